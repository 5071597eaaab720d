//! The WorkTeam: applies load from one machine.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use spandrel::{CompletionStatus, SystemException};

use super::config::AgentConfig;
use super::{limited_time, machine};
use crate::idl::WorkTeamServant as PaperWorkTeam;
use crate::idl::orchestra::work_team::{BeginError, TakeResultError};
use crate::idl::orchestra::{
    Busy, InvalidLoad, Load, LoadFailed, LoadResult, NoLoad, Progress, Property, WorkTeamServant,
};
use crate::load::{self, CANCELLED, Control, paper_load};

/// The longest wait of one call, in seconds.
const MAX_WAIT: f64 = 60.0;

/// A load that was begun.
#[derive(Debug, Default)]
struct Job {
    number: u32,
    control: Control,
    result: Mutex<Option<Result<LoadResult, InvalidLoad>>>,
    is_done: Condvar,
}

impl Job {
    fn result(&self) -> MutexGuard<'_, Option<Result<LoadResult, InvalidLoad>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, settings: &Load, target: &SocketAddr) {
        let result =
            load::run(settings, target, &self.control).map(|result| LoadResult { number: self.number, ..result });
        *self.result() = Some(result);
        self.is_done.notify_all();
    }

    /// Cancels the load. Its waits end now; its workers end after their present steps.
    fn cancel(&self) {
        self.control.cancel();
        drop(self.result()); // a thread that has seen no cancellation waits now
        self.is_done.notify_all();
    }
}

/// The settings of `init`.
#[derive(Clone, Debug)]
struct PaperSettings {
    host: String,
    port: u16,
    octets: u32,
}

/// The servant of a machine's WorkTeam.
#[derive(Debug)]
pub(crate) struct WorkTeam {
    config: AgentConfig,
    is_insecure: bool,
    settings: Mutex<Option<PaperSettings>>,
    job: Mutex<Option<Arc<Job>>>,
    /// The number of the last load.
    last_number: AtomicU32,
}

impl WorkTeam {
    pub(crate) fn new(config: AgentConfig, is_insecure: bool) -> Self {
        Self { config, is_insecure, settings: Mutex::default(), job: Mutex::default(), last_number: AtomicU32::new(0) }
    }

    fn job(&self) -> MutexGuard<'_, Option<Arc<Job>>> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the load, if one runs.
    pub(crate) fn end(&self) {
        if let Some(job) = self.job().take() {
            job.cancel();
        }
    }

    /// Lets another load begin, unless one has replaced this already.
    fn forget(&self, job: &Arc<Job>) {
        let mut current = self.job();
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, job)) {
            *current = None;
        }
    }

    /// Checks a load, and starts it in a thread of its own.
    fn begin_job(&self, settings: &Load) -> Result<Arc<Job>, BeginError> {
        load::check(settings)?;
        self.config.check_target(&settings.target.host, self.is_insecure)?;
        if settings.workers > self.config.max_workers {
            let (workers, limit) = (settings.workers, self.config.max_workers);
            return Err(InvalidLoad { reason: format!("{workers} workers exceed max_workers = {limit}") }.into());
        }
        let target = load::resolve(&settings.target)?;
        let mut current = self.job();
        if current.as_ref().is_some_and(|job| job.result().is_none()) {
            return Err(Busy {}.into());
        }
        let number = self.last_number.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let job = Arc::new(Job { number, ..Job::default() });
        let (running, settings) = (Arc::clone(&job), settings.clone());
        let thread = thread::Builder::new().name("load".to_owned());
        thread
            .spawn(move || running.run(&settings, &target))
            .map_err(|error| InvalidLoad { reason: format!("cannot start a thread: {error}") })?;
        *current = Some(Arc::clone(&job));
        Ok(job)
    }

    /// The system exception of a refused load, for the paper's operations, which raise no other.
    fn refused(error: BeginError) -> SystemException {
        match error {
            BeginError::System(exception) => exception,
            BeginError::Busy(_) => {
                SystemException::transient(0, CompletionStatus::No).with_detail("another load is running")
            }
            other => SystemException::bad_param(0, CompletionStatus::No).with_detail(other.to_string()),
        }
    }
}

/// The paper's interface (figure A.3).
impl PaperWorkTeam for WorkTeam {
    fn init(&self, host: &str, port: u16, numbytes: u32) -> Result<bool, SystemException> {
        let is_valid = port != 0
            && (1..=load::MAX_OCTETS).contains(&numbytes)
            && self.config.check_target(host, self.is_insecure).is_ok();
        if is_valid {
            let settings = PaperSettings { host: host.to_owned(), port, octets: numbytes };
            *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = Some(settings);
        }
        Ok(is_valid)
    }

    fn dowork(&self, num_iter: &mut i32, time: &mut f64, numparallel: i32) -> Result<i32, SystemException> {
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let settings = settings.ok_or_else(|| {
            SystemException::bad_inv_order(0, CompletionStatus::No).with_detail("init was not called before")
        })?;
        let number = |value: i32| u64::try_from(value).unwrap_or(0);
        let workers = u32::try_from(numparallel).unwrap_or(0);
        let load = paper_load(&settings.host, settings.port, number(*num_iter), settings.octets, workers);
        let job = self.begin_job(&Load { seconds: time.max(0.0), ..load }).map_err(Self::refused)?;
        let result = job.is_done.wait_while(job.result(), |result| result.is_none());
        let result = result.unwrap_or_else(PoisonError::into_inner).take().expect("the wait has ended");
        self.forget(&job);
        let result = result.map_err(|error| Self::refused(error.into()))?;
        *num_iter = i32::try_from(result.requests).unwrap_or(i32::MAX);
        *time = result.elapsed;
        Ok(i32::try_from(result.failed).unwrap_or(i32::MAX))
    }
}

impl WorkTeamServant for WorkTeam {
    fn machine(&self) -> Result<Vec<Property>, SystemException> {
        Ok(machine())
    }

    fn begin(&self, settings: &Load) -> Result<u32, BeginError> {
        self.begin_job(settings).map(|job| job.number)
    }

    fn take_result(&self, seconds: f64) -> Result<(bool, LoadResult), TakeResultError> {
        let limit = limited_time("seconds", seconds, MAX_WAIT)?;
        let job = self.job().clone().ok_or(NoLoad {})?;
        let is_running = |result: &mut Option<_>| result.is_none() && !job.control.is_cancelled();
        let waited = job.is_done.wait_timeout_while(job.result(), limit, is_running);
        // The lock of the result is free again when the job is forgotten.
        let result = waited.unwrap_or_else(PoisonError::into_inner).0.take();
        match result {
            // Its counts are not those of the load that was begun.
            None | Some(Ok(_)) if job.control.is_cancelled() => {
                self.forget(&job);
                Err(LoadFailed { reason: CANCELLED.to_owned() }.into())
            }
            None => Ok((false, LoadResult::default())),
            Some(result) => {
                self.forget(&job);
                result.map(|result| (true, result)).map_err(|error| LoadFailed { reason: error.reason }.into())
            }
        }
    }

    fn current_progress(&self) -> Result<Progress, SystemException> {
        let (answered, failed) = self.job().as_ref().map(|job| job.control.counts()).unwrap_or_default();
        Ok(Progress { answered, failed })
    }

    fn cancel(&self) -> Result<(), SystemException> {
        self.end();
        Ok(())
    }
}
