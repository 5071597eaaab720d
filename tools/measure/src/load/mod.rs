//! The load generator: requests by many workers, in a closed or an open loop.
//!
//! In a closed loop, each worker makes its next request after the answer to the one before: the server sets the pace.
//! In an open loop, requests are due at scheduled times, whether or not earlier ones have been answered.
//! The time of a request is measured from its scheduled time. A stall of the server so delays, and shows in,
//! all requests that were due during the stall. A closed loop would have sent none of them, and would report
//! one slow request (coordinated omission).
//!
//! Workers make the requests. Each takes the next request of the schedule, waits for its time, and makes it;
//! with enough workers, requests are sent in time while others wait for their answers. If all workers wait,
//! requests are sent late, which the report of [`run`] shows as its own figure.
//!
//! A [`Schedule`] has the requests, [`drive`] the threads of the [`Worker`]s, and a [`LoadStop`] ends both. [`run`] is an
//! open loop with a report. This module does not know what a request is.

mod drive;
mod open_loop;
mod record;
mod report;
mod schedule;
mod settings;
mod stop;

pub use drive::{StartError, Worker, drive};
pub use open_loop::run;
pub use report::LoadReport;
pub use schedule::{Arrival, Request, Schedule, exponential};
pub use settings::LoadSettings;
pub use stop::LoadStop;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::record::{MAX_KINDS, OTHER};
    use super::*;

    fn settings(rate: f64, millis: u64) -> LoadSettings {
        let drain = Duration::from_secs(20);
        LoadSettings { rate, duration: Duration::from_millis(millis), drain }
    }

    /// Waits for a time, as a server that stalls does.
    fn stall(time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            thread::park_timeout(left);
        }
    }

    #[test]
    fn every_request_of_the_schedule_is_made_once() {
        let made = AtomicU64::new(0);
        let workers = (0..4).map(|_| {
            || {
                made.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        });
        let report = run(&settings(2000.0, 100), workers.collect(), &LoadStop::default()).unwrap().unwrap();
        assert_eq!((report.due, report.answered, report.failed, report.given_up), (200, 200, 0, 0));
        assert_eq!(made.into_inner(), 200);
    }

    /// A request that takes 200 ms delays those that are due meanwhile: about 200 of 1,000 requests, of which
    /// half wait longer than 100 ms. A closed loop would report one.
    #[test]
    fn a_stall_shows_in_all_requests_that_were_due_during_it() {
        let mut made = 0;
        let worker = || {
            made += 1;
            if made == 100 {
                stall(Duration::from_millis(200));
            }
            Ok(())
        };
        let report = run(&settings(1000.0, 1000), vec![worker], &LoadStop::default()).unwrap().unwrap();
        assert_eq!(report.answered, 1000);
        let times = report.times.unwrap();
        assert!(times.p90 > 50_000.0, "{times:?}");
        assert!(times.max >= 200_000.0 * 0.99, "{times:?}");
        // They were sent late, since the only worker was busy.
        assert!(report.send_delays.unwrap().p90 > 50_000.0);
    }

    /// Other workers send in time during the stall of one.
    #[test]
    fn a_stalled_request_does_not_delay_others_while_workers_are_left() {
        let made = AtomicU64::new(0);
        let workers = (0..8).map(|_| {
            || {
                if made.fetch_add(1, Ordering::Relaxed) == 50 {
                    stall(Duration::from_millis(300));
                }
                Ok(())
            }
        });
        let report = run(&settings(500.0, 400), workers.collect(), &LoadStop::default()).unwrap().unwrap();
        let times = report.times.unwrap();
        assert!(times.max >= 300_000.0 * 0.99, "{times:?}");
        assert!(times.median < 100_000.0, "{times:?}");
    }

    #[test]
    fn failures_are_counted_by_kind() {
        let mut made = 0_u32;
        let worker = || {
            made += 1;
            match made % 4 {
                0 => Err("TRANSIENT".to_owned()),
                1 if made > 100 => Err(format!("kind {made}")),
                _ => Ok(()),
            }
        };
        let report = run(&settings(10_000.0, 100), vec![worker], &LoadStop::default()).unwrap().unwrap();
        assert_eq!(report.due, 1000);
        assert_eq!(report.answered + report.failed, 1000);
        assert_eq!(report.failures["TRANSIENT"], 250);
        assert_eq!(report.failures.len(), MAX_KINDS + 1);
        assert!(report.failures[OTHER] > 100);
    }

    #[test]
    fn requests_that_could_not_be_sent_are_given_up() {
        let worker = || {
            stall(Duration::from_millis(100));
            Ok(())
        };
        let settings = LoadSettings { drain: Duration::ZERO, ..settings(1000.0, 250) };
        let report = run(&settings, vec![worker], &LoadStop::default()).unwrap().unwrap();
        assert_eq!(report.due, 250);
        assert!(report.given_up > 200, "{report}");
        assert_eq!(report.answered + report.given_up, 250);
        assert!(report.to_string().contains("given up"), "{report}");
    }

    #[test]
    fn a_stopped_load_reports_the_requests_that_were_due() {
        let (stop, mut made) = (LoadStop::default(), 0);
        let worker = || {
            made += 1;
            if made == 5 {
                stop.stop();
            }
            Ok(())
        };
        let report = run(&settings(100.0, 3_600_000), vec![worker], &stop).unwrap().unwrap();
        assert_eq!(report.answered, 5);
        assert!((5..360_000).contains(&report.due) && report.given_up == report.due - 5, "{report}");
        assert!(report.seconds < 3_600.0 && report.to_string().contains("stopped before its time"), "{report}");
    }

    #[test]
    fn a_load_without_requests_has_no_report() {
        assert!(
            run(&settings(1.0, 100), Vec::<fn() -> Result<(), String>>::new(), &LoadStop::default()).unwrap().is_none()
        );
        let nothing = || || Ok(());
        assert!(run(&settings(0.0, 100), vec![nothing()], &LoadStop::default()).unwrap().is_none());
        assert!(run(&settings(f64::NAN, 100), vec![nothing()], &LoadStop::default()).unwrap().is_none());
        assert!(run(&settings(1.0, 0), vec![nothing()], &LoadStop::default()).unwrap().is_none());
    }
}
