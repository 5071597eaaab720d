//! Tests that need the whole process, without the test harness: processes that are this program again, and signals.

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
    signals::signals_are_told_to_all_who_asked();
    println!("process: passed");
}
