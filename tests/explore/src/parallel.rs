//! Items that run at the same time, as many as there are processors.

use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

use anyhow::Result;

/// Runs as many items at once as there are processors. After a failure no further item is started.
pub(crate) fn run_in_parallel<T: Sync>(items: &[T], run: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let remaining = Mutex::new(items.iter());
    let run_remaining = || -> Result<()> {
        loop {
            let Some(item) = remaining.lock().expect("no holder panics").next() else { return Ok(()) };
            if let Err(error) = run(item) {
                *remaining.lock().expect("no holder panics") = [].iter();
                return Err(error);
            }
        }
    };
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(run_remaining)).collect();
        let results: Vec<_> =
            workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect();
        results.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;

    use anyhow::bail;

    use super::*;

    #[test]
    fn each_item_runs_once_and_after_a_failure_none_is_started() {
        let runs = AtomicU32::new(0);
        let count = |item: &u32| {
            let nth = runs.fetch_add(1, Relaxed);
            if *item == 0 { bail!("item {nth} failed") } else { Ok(()) }
        };
        run_in_parallel(&[1; 100], count).unwrap();
        assert_eq!(runs.swap(0, Relaxed), 100);
        run_in_parallel(&[0; 100], count).unwrap_err();
        assert!(runs.into_inner() <= thread::available_parallelism().unwrap().get() as u32);
    }
}
