//! Reading the files again: at a signal, when a file has changed, or on request.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

#[cfg(unix)]
use spandrel_reactor::{Context, EventHandler, HandlerId, Interest, Pollable, Signal};
use spandrel_sync::{Arc, Condition, Mutex, thread};

use crate::changes::Changes;
use crate::configurator::Configurator;

/// A thread that makes a [`Configurator`] read its files again. Requests that come while it reads are merged into one.
/// Dropping the value ends the thread.
#[derive(Debug)]
pub struct Reload {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
    #[cfg(unix)]
    handler: Option<(spandrel_reactor::Registry, HandlerId)>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condition,
}

#[derive(Debug, Default)]
struct State {
    is_requested: bool,
    has_ended: bool,
    /// The number of readings that have ended.
    readings: u64,
    last: Option<Result<Changes, String>>,
}

/// The content of files, as far as their metadata shows that.
type Stamps = Vec<(PathBuf, Option<(u64, SystemTime)>)>;

fn stamps(configurator: &Configurator) -> Stamps {
    let stamp = |file: PathBuf| {
        let metadata = std::fs::metadata(&file).ok();
        let stamp = metadata.and_then(|metadata| Some((metadata.len(), metadata.modified().ok()?)));
        (file, stamp)
    };
    configurator.watched_files().into_iter().map(stamp).collect()
}

impl Reload {
    /// Starts the thread. With `watch`, it looks at the files and libraries of the present configuration at that interval, and
    /// reads them once a change has been the same at two looks.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn start(configurator: &Configurator, watch: Option<Duration>) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let (of_thread, configurator) = (Arc::clone(&shared), configurator.clone());
        let known_stamps = watch.map(|_| stamps(&configurator));
        let body = move || run(&of_thread, &configurator, watch, known_stamps);
        let thread = thread::Builder::new().name("reconfigure".to_owned()).spawn(body)?;
        Ok(Self {
            shared,
            thread: Some(thread),
            #[cfg(unix)]
            handler: None,
        })
    }

    /// Reads the files at each arrival of a signal, SIGHUP by convention.
    ///
    /// # Errors
    /// Those of the registration.
    #[cfg(unix)]
    pub fn on_signal(mut self, configurator: &Configurator, signal: Signal) -> io::Result<Self> {
        struct Hangup(Arc<Shared>);

        impl EventHandler for Hangup {
            fn pollable(&self) -> Option<&dyn Pollable> {
                None
            }

            fn handle_signal(&mut self, _: &Context<'_>, _: Signal) -> io::Result<()> {
                self.0.request();
                Ok(())
            }
        }

        let registry = configurator.registry();
        let id = registry.register(Hangup(Arc::clone(&self.shared)), Interest::NONE)?;
        registry.on_signal(id, signal)?;
        self.handler = Some((registry.clone(), id));
        Ok(self)
    }

    /// Asks for a reading of the files, without waiting for it.
    pub fn request(&self) {
        self.shared.request();
    }

    /// The result of the last reading; `None` before the first.
    #[must_use]
    pub fn last(&self) -> Option<Result<Changes, String>> {
        self.shared.state.lock().last.clone()
    }

    /// The number of readings that have ended.
    #[must_use]
    pub fn readings(&self) -> u64 {
        self.shared.state.lock().readings
    }
}

impl Shared {
    fn request(&self) {
        self.state.lock().is_requested = true;
        self.changed.notify_all();
    }
}

impl Drop for Reload {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some((registry, id)) = self.handler.take() {
            registry.remove(id);
        }
        self.shared.state.lock().has_ended = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            _ = thread.join();
        }
    }
}

fn run(shared: &Shared, configurator: &Configurator, watch: Option<Duration>, mut known: Option<Stamps>) {
    let mut candidate: Option<Stamps> = None;
    loop {
        let mut state = shared.state.lock();
        while !state.is_requested && !state.has_ended {
            let Some(interval) = watch else {
                shared.changed.wait(&mut state);
                continue;
            };
            if shared.changed.wait_for(&mut state, interval).timed_out() {
                break;
            }
        }
        if state.has_ended {
            return;
        }
        let mut is_wanted = std::mem::take(&mut state.is_requested);
        drop(state);
        if !is_wanted {
            let present = stamps(configurator);
            let has_changed = known.as_ref() != Some(&present);
            is_wanted = has_changed && candidate.as_ref() == Some(&present);
            candidate = has_changed.then_some(present);
        }
        if is_wanted {
            // Before the reading, so that a change during it is noticed.
            let before = watch.map(|_| stamps(configurator));
            let result = reconfigure(configurator);
            // Files that the new configuration includes are known as they are now.
            let after = watch.map(|_| stamps(configurator));
            known = merged(before, after);
            candidate = None;
            let mut state = shared.state.lock();
            state.last = Some(result);
            state.readings += 1;
            drop(state);
            shared.changed.notify_all();
        }
    }
}

/// The later list, with the earlier stamps of files that are in both.
fn merged(before: Option<Stamps>, after: Option<Stamps>) -> Option<Stamps> {
    let before = before?;
    let earlier = |file: &PathBuf| before.iter().find(|(other, _)| other == file).map(|(_, stamp)| *stamp);
    Some(after?.into_iter().map(|(file, stamp)| (file.clone(), earlier(&file).unwrap_or(stamp))).collect())
}

fn reconfigure(configurator: &Configurator) -> Result<Changes, String> {
    match configurator.reconfigure() {
        Ok(changes) => {
            tracing::info!("configuration read again: {changes}");
            Ok(changes)
        }
        Err(error) => {
            let text = error.in_line();
            tracing::error!("the configuration stays as it was: {text}");
            Err(text)
        }
    }
}
