//! Tests that need the whole process, without the test harness: processes that run this program again, and
//! signals.

#[cfg(target_os = "linux")]
mod processes;
#[cfg(unix)]
mod scripted;
#[cfg(unix)]
mod signals;
#[cfg(target_os = "linux")]
mod support;

fn main() {
    #[cfg(target_os = "linux")]
    processes::a_process_serves_each_connection();
    #[cfg(unix)]
    signals::signals_reach_all_subscribers();
    println!("process: passed");
}
