//! The size of an experiment, from the command line.

use anyhow::{Result, ensure};

use crate::builds::Profile;

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
}

/// The options of an experiment.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Whether all servers can be measured: 2 samples of 500 requests in 2 slices, of programs that are not optimised
    #[arg(long)]
    chosen: bool,
    /// The samples of each server [default: 50]
    #[arg(long, value_name = "N")]
    samples: Option<i64>,
    /// The requests of each sample [default: 20000]
    #[arg(long, value_name = "N")]
    requests: Option<i64>,
    /// The slices of a sample, which alternate between servers that are compared; 1: one server after the other
    /// [default: 20]
    #[arg(long, value_name = "N")]
    slices: Option<i64>,
    /// Give the servers one processor, and the load another
    #[arg(long)]
    pinned: bool,
    /// Only these programs, separated by commas
    #[arg(long, value_name = "NAME,…")]
    pub(super) only: Option<String>,
}

impl Options {
    /// The size of the experiment.
    ///
    /// # Errors
    /// More slices than requests, or none.
    pub(super) fn size(&self) -> Result<Size> {
        let base = if self.chosen { Size::CHOSEN } else { Size::PAPER };
        let size = Size {
            samples: self.samples.unwrap_or(base.samples),
            requests: self.requests.unwrap_or(base.requests),
            slices: self.slices.unwrap_or(base.slices),
            is_pinned: self.pinned,
            profile: base.profile,
        };
        ensure!(
            (1..=size.requests.min(10_000)).contains(&size.slices),
            "--slices {}: a sample of {} requests has from 1 to {} slices",
            size.slices,
            size.requests,
            size.requests.min(10_000)
        );
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_change_the_size() {
        let options = Options { slices: Some(8), pinned: true, samples: Some(5), ..Options::default() };
        let size = options.size().unwrap();
        assert_eq!((size.samples, size.requests, size.slices, size.is_pinned), (5, 20_000, 8, true));
        assert_eq!(Options { chosen: true, ..Options::default() }.size().unwrap().slices, 2);
        for (options, reason) in [
            (Options { slices: Some(0), ..Options::default() }, "from 1 to 10000 slices"),
            (
                Options { requests: Some(10), ..Options::default() },
                "--slices 20: a sample of 10 requests has from 1 to 10 slices",
            ),
        ] {
            let error = format!("{:#}", options.size().unwrap_err());
            assert!(error.contains(reason), "`{reason}` is missing in: {error}");
        }
    }
}
