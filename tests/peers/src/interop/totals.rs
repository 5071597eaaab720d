//! The number of cases of a whole run, which `docs/interoperability.md` also has.

use std::fmt;
use std::fs;

use anyhow::{Context, Result, ensure};
use xtask::workspace;

const PAGE: &str = "docs/interoperability.md";

/// The numbers of cases and of pairings that were run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Totals {
    pub(super) cases: usize,
    pub(super) pairings: usize,
}

impl Totals {
    /// Compares them with the figures on the page, or writes them there.
    ///
    /// # Errors
    /// If the page has other figures, or none.
    pub(super) fn compare_with_page(self, is_recorded: bool) -> Result<()> {
        let path = workspace::root().join(PAGE);
        let page = fs::read_to_string(&path).with_context(|| PAGE.to_owned())?;
        let (start, end, recorded) =
            Self::find_in_page(&page).with_context(|| format!("{PAGE} has no figures like `{self}`"))?;
        if is_recorded {
            let page = format!("{}{self}{}", &page[..start], &page[end..]);
            return fs::write(&path, page).with_context(|| PAGE.to_owned());
        }
        ensure!(
            recorded == self,
            "{PAGE} has `{recorded}`, and this run had `{self}`: correct the page, or run with --record"
        );
        Ok(())
    }

    /// The position of the totals on a page, and their value.
    fn find_in_page(page: &str) -> Option<(usize, usize, Self)> {
        let (before, after) = page.split_once(" cases in ")?;
        let (pairings, _) = after.split_once(" pairings")?;
        let cases = &before[before.rfind(char::is_whitespace).map_or(0, |at| at + 1)..];
        let number = |digits: &str| digits.replace(',', "").parse().ok();
        let recorded = Self { cases: number(cases)?, pairings: number(pairings)? };
        let end = page.len() - after.len() + pairings.len() + " pairings".len();
        Some((before.len() - cases.len(), end, recorded))
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cases in {} pairings", grouped(self.cases), grouped(self.pairings))
    }
}

/// With a comma between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_parsed_from_their_display_form() {
        for totals in [Totals { cases: 13_325, pairings: 180 }, Totals { cases: 7, pairings: 1_234_567 }] {
            let page = format!("of all suites (with spaces): {totals}, none failed");
            let (start, end, recorded) = Totals::find_in_page(&page).unwrap();
            assert_eq!((&page[start..end], recorded), (totals.to_string().as_str(), totals));
        }
        assert_eq!(Totals { cases: 13_325, pairings: 180 }.to_string(), "13,325 cases in 180 pairings");
        for unclear in ["", "many cases in 7 pairings", "7 cases in pairings", "7 cases"] {
            assert_eq!(Totals::find_in_page(unclear), None, "{unclear}");
        }
    }

    /// The totals that a whole run prints and compares; it fails if the page has other figures.
    #[test]
    fn the_page_has_totals_for_the_comparison() {
        let page = fs::read_to_string(workspace::root().join(PAGE)).unwrap();
        let (_, _, recorded) = Totals::find_in_page(&page).expect("the page has the number of cases");
        recorded.compare_with_page(false).unwrap();
        let other = Totals { cases: recorded.cases + 1, ..recorded };
        let error = other.compare_with_page(false).unwrap_err().to_string();
        assert!(error.contains(&recorded.to_string()) && error.contains(&other.to_string()), "{error}");
    }
}
