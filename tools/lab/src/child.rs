//! The code of a child process.

use std::io;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
#[cfg(target_os = "linux")]
use std::time::Duration;

use crate::LabError;
#[cfg(target_os = "linux")]
use crate::bench;
use crate::mechanism::Job;
use crate::peer::child::{ChildKind, ChildRole};
use crate::peer::receiver::ControlServer;
use crate::peer::transmitter::Session;
use crate::peer::{FromChild, read_line, write_line};
use crate::placement;
use crate::scalability::ours;
use crate::soak;

/// The action at the end of a child.
static END_ACTION: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Sets the action that a child carries out at its end, unless it is ended from outside.
#[cfg_attr(not(feature = "clap"), allow(dead_code, reason = "the subcommand of children sets it"))]
pub(crate) fn set_end_action(action: Box<dyn FnOnce() + Send>) {
    *END_ACTION.lock().unwrap_or_else(PoisonError::into_inner) = Some(action);
}

fn run_end_action() {
    let action = END_ACTION.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(action) = action {
        action();
    }
}

/// Runs a child until the parent closes the standard input, which ends the process.
///
/// # Errors
/// If it could not start; the parent has been notified then.
pub fn run(role: &ChildRole) -> Result<(), LabError> {
    let outcome = begin(role);
    run_end_action();
    if let Err(error) = &outcome {
        print_line(&FromChild::Failed(error.chain()))?;
    }
    outcome
}

fn begin(role: &ChildRole) -> Result<(), LabError> {
    if let Some(core) = role.core {
        placement::pin(core)?; // before any thread is started: threads inherit it
    }
    match &role.kind {
        ChildKind::Receive(addr) => {
            let server = ControlServer::open(addr)?;
            print_line(&FromChild::Listening(server.local_addr().to_string()))?;
            watch_parent(|_| {})?;
            server.run(|_| {}) // the transmitter gets failures and passes them on
        }
        ChildKind::Transmit(addr) => {
            let mut session = Session::connect(addr)?;
            print_line(&FromChild::Connected)?;
            let (sender, jobs) = mpsc::channel();
            watch_parent(move |job| _ = sender.send(job))?;
            for job in jobs {
                print_line(&match session.run(&job) {
                    Ok(outcome) => FromChild::Done(outcome),
                    Err(error) => FromChild::Failed(error.chain()),
                })?;
            }
            Ok(())
        }
        ChildKind::ServantsServer { servants, is_dynamic } => ours::serve(*servants, *is_dynamic),
        ChildKind::ServantsClient { reference, is_private } => ours::call(reference, *is_private),
        ChildKind::SoakServer { options } => soak::serve(options),
        #[cfg(target_os = "linux")]
        ChildKind::CallsServer { options, work_micros, is_asynchronous } => {
            bench::serve_calls(options, Duration::from_micros((*work_micros).into()), *is_asynchronous)
        }
        #[cfg(target_os = "linux")]
        ChildKind::InFlightClient { reference } => bench::call_in_flight(reference),
        #[cfg(target_os = "linux")]
        ChildKind::PrioritiesServer { contender, path, next, work_micros, spin_millis } => bench::serve_priorities(
            contender.parse()?,
            path.as_deref(),
            next.as_deref(),
            work_micros.map(|micros| Duration::from_micros(micros.into())),
            Duration::from_millis(*spin_millis),
        ),
        #[cfg(target_os = "linux")]
        ChildKind::Echo(server) => {
            watch_parent(|_| {})?;
            server.serve()
        }
    }
}

fn print_line(message: &FromChild) -> Result<(), LabError> {
    write_line(&mut io::stdout().lock(), message).map_err(LabError::io("speak to the parent"))
}

/// Passes on the parent's jobs, and ends the process as soon as there is no parent.
fn watch_parent(mut each: impl FnMut(Job) + Send + 'static) -> Result<(), LabError> {
    let watch = move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(job)) = read_line::<Job>(&mut input) {
            each(job);
        }
        run_end_action();
        std::process::exit(0);
    };
    thread::Builder::new().name("parent".to_owned()).spawn(watch).map_err(LabError::io("start a thread"))?;
    Ok(())
}
