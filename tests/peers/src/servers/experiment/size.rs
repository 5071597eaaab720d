//! The size of an experiment, from the command line.

use anyhow::{Result, bail, ensure};
use xtask::arguments::number;
use xtask::profile::Profile;

/// The size of an experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) samples: i64,
    pub(super) requests: i64,
    /// The slices of a sample, which alternate between servers that are compared.
    pub(super) slices: i64,
    /// Whether the servers have a processor of their own, and the load another one.
    pub(super) is_pinned: bool,
    pub(super) profile: Profile,
}

impl Size {
    /// That of the paper (5.6), in slices.
    pub(super) const PAPER: Self =
        Self { samples: 50, requests: 20_000, slices: 20, is_pinned: false, profile: Profile::Release };
    /// That of each change: whether all servers are measured, not how fast they are.
    pub(super) const CHOSEN: Self =
        Self { samples: 2, requests: 500, slices: 2, is_pinned: false, profile: Profile::Dev };

    /// The size of the experiment, and the names of the programs.
    pub(super) fn parse<'w>(mut words: &[&'w str]) -> Result<(Self, Option<&'w str>)> {
        let (mut size, mut only) = (Self::PAPER, None);
        if let ["--chosen", rest @ ..] = words {
            (size, words) = (Self::CHOSEN, rest);
        }
        loop {
            words = match words {
                [] => break,
                ["--samples", samples, rest @ ..] => {
                    size.samples = number(samples)?;
                    rest
                }
                ["--requests", requests, rest @ ..] => {
                    size.requests = number(requests)?;
                    rest
                }
                ["--slices", slices, rest @ ..] => {
                    size.slices = number(slices)?;
                    rest
                }
                ["--pinned", rest @ ..] => {
                    size.is_pinned = true;
                    rest
                }
                ["--only", names, rest @ ..] => {
                    only = Some(*names);
                    rest
                }
                [word, ..] => bail!("`{word}` is no option of orchestra, or lacks its value"),
            };
        }
        ensure!(
            (1..=size.requests.min(10_000)).contains(&size.slices),
            "--slices {}: a sample of {} requests has from 1 to {} slices",
            size.slices,
            size.requests,
            size.requests.min(10_000)
        );
        Ok((size, only))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_change_the_size() {
        let (size, only) =
            Size::parse(&["--slices", "8", "--pinned", "--only", "spandrel,posix", "--samples", "5"]).unwrap();
        assert_eq!((size.samples, size.requests, size.slices, only), (5, 20_000, 8, Some("spandrel,posix")));
        assert!(size.is_pinned);
        assert_eq!(Size::parse(&["--chosen"]).unwrap().0.slices, 2);
        for (words, reason) in [
            (&["--slices", "0"][..], "from 1 to 10000 slices"),
            (&["--requests", "10"], "--slices 20: a sample of 10 requests has from 1 to 10 slices"),
            (&["--slices"], "`--slices` is no option of orchestra, or lacks its value"),
            (&["--samples", "1", "--chosen"], "`--chosen` is no option"),
        ] {
            let error = format!("{:#}", Size::parse(words).unwrap_err());
            assert!(error.contains(reason), "`{reason}` is missing in: {error}");
        }
    }
}
