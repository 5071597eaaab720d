//! The pool of threads for jobs.

use std::sync::{Arc, mpsc};

use spandrel_reactor::{JobPool, TooManyJobs};
use spandrel_test_support::TEST_TIMEOUT;

#[test]
fn a_full_pool_refuses_jobs_and_runs_the_others_in_order() {
    let pool = JobPool::new("jobs", 1, 2).unwrap();
    let (release, gate) = mpsc::channel::<()>();
    let (send, results) = mpsc::channel();
    let first_send = send.clone();
    let first = move || {
        first_send.send(0).unwrap();
        gate.recv().unwrap();
    };
    pool.execute(first).unwrap();
    assert_eq!(results.recv_timeout(TEST_TIMEOUT), Ok(0), "the thread is busy");
    for number in [1, 2] {
        let send = send.clone();
        pool.execute(move || send.send(number).unwrap()).unwrap();
    }
    assert_eq!(pool.execute(|| ()), Err(TooManyJobs { capacity: 2 }));
    assert_eq!(pool.waiting(), 2);
    release.send(()).unwrap();
    drop(pool); // waits for the jobs
    assert_eq!(results.try_iter().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_job_that_panics_or_drops_its_pool_ends_no_other() {
    let pool = Arc::new(JobPool::new("jobs", 1, 10).unwrap());
    let (send, results) = mpsc::channel();
    pool.execute(|| panic!("expected")).unwrap();
    let own = Arc::clone(&pool);
    pool.execute(move || drop(own)).unwrap();
    pool.execute(move || send.send(()).unwrap()).unwrap();
    drop(pool);
    assert_eq!(results.recv_timeout(TEST_TIMEOUT), Ok(()));
}
