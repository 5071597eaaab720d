//! The names of adapters.

/// The name of the root adapter (15.3.9.1).
pub(crate) const ROOT_NAME: &str = "RootPOA";

/// The names of an adapter, starting with the root adapter. A path starts with the root adapter's child.
pub(crate) fn full_name(path: &[String]) -> Vec<String> {
    std::iter::once(ROOT_NAME.to_owned()).chain(path.iter().cloned()).collect()
}

/// The names of an adapter as one text, such as `RootPOA/accounts`.
pub(crate) fn full_name_text(path: &[String]) -> String {
    full_name(path).join("/")
}
