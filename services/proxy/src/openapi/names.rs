//! Names of which each occurs once in a document.

/// The name itself, or with a number behind it if it is taken.
pub(super) fn unique(base: String, is_taken: &dyn Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number: usize| format!("{base}_{number}"));
    std::iter::once(base.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(base)
}
