//! Events of the console that end the process.

use std::io;
use std::sync::OnceLock; // set once in the process
use std::thread;

use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::core::BOOL;

/// The function that treats the events.
static TREAT: OnceLock<fn(bool) -> bool> = OnceLock::new();

/// Calls `treat` for each event, in a thread of the system, with whether the user interrupts the program from
/// the keyboard; unless it returns true, the process ends.
pub(crate) fn on_event(treat: fn(bool) -> bool) -> io::Result<()> {
    TREAT.get_or_init(|| treat);
    // SAFETY: the function is there as long as the process, and may be called by any thread.
    match unsafe { SetConsoleCtrlHandler(Some(handle), 1) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Called by the system, in a thread that it makes for each event.
unsafe extern "system" fn handle(event: u32) -> BOOL {
    let is_interrupt = matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT);
    let is_treated = TREAT.get().is_some_and(|treat| treat(is_interrupt));
    if is_treated && !is_interrupt {
        // When this function returns, the system ends the process, which has not finished yet.
        loop {
            thread::park();
        }
    }
    is_treated.into()
}
