//! How many cases a whole run has, which `docs/interoperability.md` says, too.

use std::fmt;
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::place;

const PAGE: &str = "docs/interoperability.md";

/// Cases that were run, in how many pairings.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Totals {
    pub(super) cases: usize,
    pub(super) pairings: usize,
}

impl Totals {
    /// Compares them with what the page says, or writes them there.
    ///
    /// # Errors
    /// If the page says something else, or nothing.
    pub(super) fn compare_with_page(self, is_recorded: bool) -> Result<()> {
        let path = place::root().join(PAGE);
        let page = fs::read_to_string(&path).with_context(|| PAGE.to_owned())?;
        let (start, end, said) = Self::said(&page).with_context(|| format!("{PAGE} does not say `{self}`"))?;
        if is_recorded {
            let page = format!("{}{self}{}", &page[..start], &page[end..]);
            return fs::write(&path, page).with_context(|| PAGE.to_owned());
        }
        ensure!(
            said == self,
            "{PAGE} says `{said}`, and this run had `{self}`: correct the page, or run with --record"
        );
        Ok(())
    }

    /// Where a page says totals, and which.
    fn said(page: &str) -> Option<(usize, usize, Self)> {
        let (before, after) = page.split_once(" cases in ")?;
        let (pairings, _) = after.split_once(" pairings")?;
        let cases = &before[before.rfind(char::is_whitespace).map_or(0, |at| at + 1)..];
        let number = |digits: &str| digits.replace(',', "").parse().ok();
        let said = Self { cases: number(cases)?, pairings: number(pairings)? };
        let end = page.len() - after.len() + pairings.len() + " pairings".len();
        Some((before.len() - cases.len(), end, said))
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
    fn totals_are_read_as_they_are_written() {
        for totals in [Totals { cases: 13_325, pairings: 180 }, Totals { cases: 7, pairings: 1_234_567 }] {
            let page = format!("of all suites (with spaces): {totals}, none failed");
            let (start, end, said) = Totals::said(&page).unwrap();
            assert_eq!((&page[start..end], said), (totals.to_string().as_str(), totals));
        }
        assert_eq!(Totals { cases: 13_325, pairings: 180 }.to_string(), "13,325 cases in 180 pairings");
        for unclear in ["", "many cases in 7 pairings", "7 cases in pairings", "7 cases"] {
            assert_eq!(Totals::said(unclear), None, "{unclear}");
        }
    }

    /// The totals that a whole run prints and compares; with other figures on the page it fails.
    #[test]
    fn the_page_has_totals_that_a_run_is_compared_with() {
        let page = fs::read_to_string(place::root().join(PAGE)).unwrap();
        let (_, _, said) = Totals::said(&page).expect("the page says how many cases there are");
        said.compare_with_page(false).unwrap();
        let other = Totals { cases: said.cases + 1, ..said };
        let error = other.compare_with_page(false).unwrap_err().to_string();
        assert!(error.contains(&said.to_string()) && error.contains(&other.to_string()), "{error}");
    }
}
