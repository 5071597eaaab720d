//! The executable of audio and video streams: devices with flows of files, and controls that bind devices.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod control;
mod device;
mod media;
mod options;
mod picture;
mod position;
mod progress;

use std::process::ExitCode;

use crate::options::{Args, Command};

fn main() -> ExitCode {
    spandrel_daemon::run(|| {
        let args = spandrel_daemon::parse::<Args>();
        match &args.command {
            None => device::serve(&args),
            Some(Command::Play(play)) => control::play(&args, play),
            Some(Command::Bind(devices)) => control::bind(&args, devices),
            Some(Command::Start(stream)) => control::start(&args, stream),
            Some(Command::Stop(stream)) => control::stop(&args, stream),
            Some(Command::Destroy(stream)) => control::destroy(&args, stream),
            Some(Command::Show { object }) => control::show(&args, object),
            Some(Command::Medium { control, change, at }) => control::medium(&args, control, *change, at.as_deref()),
        }
    })
}
