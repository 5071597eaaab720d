//! Tests that need the whole process, without the test harness: processes that run this program again, and
//! signals.

#[cfg(target_os = "linux")]
mod processes;
#[cfg(unix)]
mod scripted;
#[cfg(target_os = "linux")]
mod signal_driven;
#[cfg(unix)]
mod signals;
#[cfg(target_os = "linux")]
mod support;
#[cfg(unix)]
mod termination;

fn main() {
    #[cfg(unix)]
    termination::handle_requests_if_started_for_that();
    #[cfg(target_os = "linux")]
    processes::a_process_serves_each_connection();
    #[cfg(unix)]
    signals::signals_reach_all_subscribers();
    #[cfg(target_os = "linux")]
    signal_driven::input_is_announced_by_signals();
    #[cfg(unix)]
    termination::requests_to_end_reach_all_handlers_until_none_treats_them();
    println!("process: passed");
}
