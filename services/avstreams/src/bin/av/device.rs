//! The device of a process: its flows, its counts and its name.

use std::sync::Arc;
use std::sync::mpsc::channel;

use anyhow::anyhow;
use spandrel::services::av_streams::MediaControl;
use spandrel::types::Interface as _;
use spandrel::{ObjectRef, Poa};
use spandrel_avstreams::{AvError, AvStreams, DeviceDefinition};
use spandrel_daemon::{Daemon, Failure, Publication};

use crate::options::{Args, DEVICE_KEY, MEDIA_KEY, PORT};
use crate::position::PlaybackControl;
use crate::progress;

/// The streams of a process, with its device if it has one.
pub(crate) struct Served {
    pub(crate) daemon: Daemon,
    streams: Arc<AvStreams>,
    pub(crate) device: Option<(ObjectRef, DeviceDefinition)>,
}

impl Served {
    /// Opens an ORB at `--listen`, or at this port, with the device of the options.
    ///
    /// # Errors
    /// Wrong options; an address in use; a file that cannot be opened.
    pub(crate) fn start(args: &Args, default_port: u16) -> Result<Self, Failure> {
        let playback = args.playback();
        let definition = args.definition(&playback)?;
        // Devices have no state: several of them run on one machine.
        let daemon = args.daemon.start_services(&[], default_port)?;
        let streams = AvStreams::start(daemon.orb(), args.options(daemon.ssliop())).map_err(Failure::failed)?;
        let serve = |mut definition: DeviceDefinition| {
            if definition.flows.iter().any(|flow| flow.medium.is_source()) {
                let root = Poa::root(daemon.orb()).map_err(Failure::failed)?;
                let media: MediaControl = root.serve(PlaybackControl(playback)).map_err(Failure::failed)?;
                root.the_poa_manager().activate().map_err(Failure::failed)?;
                daemon.orb().set_object_key_alias(MEDIA_KEY, media.as_object()).map_err(Failure::failed)?;
                definition.media_control = Some(media);
            }
            let device = streams.add_device(definition.clone()).map_err(|error| match error {
                error @ AvError::Tls { .. } => Failure::usage(anyhow!("{error} (--cert and --key)")),
                error => Failure::failed(error),
            })?;
            daemon.orb().set_object_key_alias(DEVICE_KEY, &device).map_err(Failure::failed)?;
            Ok((device, definition))
        };
        let device = definition.map(serve).transpose()?;
        Ok(Self { device, streams: Arc::new(streams), daemon })
    }

    pub(crate) fn streams(&self) -> &AvStreams {
        &self.streams
    }

    /// The line of readiness of the device, if there is one.
    ///
    /// # Errors
    /// An ORB that was shut down.
    pub(crate) fn device_line(&self) -> Result<Option<String>, Failure> {
        let line = |(device, _): &(ObjectRef, _)| Ok(format!("{DEVICE_KEY} {}", self.daemon.url(DEVICE_KEY, device)?));
        self.device.as_ref().map(line).transpose()
    }

    /// Runs with the endpoint of metrics and lines about the flows, as the options ask for, and ends the streams.
    ///
    /// # Errors
    /// Those of `run`; an address in use.
    pub(crate) fn run(self, args: &Args, run: impl FnOnce(&Self) -> Result<(), Failure>) -> Result<(), Failure> {
        let endpoint = args.metrics.map(|address| {
            let streams = Arc::clone(&self.streams);
            self.daemon.open_metrics(address, move || render(&streams))
        });
        let endpoint = endpoint.transpose()?;
        let (ends, end) = channel::<()>();
        let outcome = std::thread::scope(|scope| {
            if let (Some(interval), Some((device, definition))) = (progress::interval(args.progress), &self.device) {
                let streams = &*self.streams;
                scope.spawn(move || progress::run(streams, (device, definition), interval, &end));
            }
            let outcome = run(&self);
            drop(ends);
            outcome
        });
        drop(endpoint);
        if let Some(streams) = Arc::into_inner(self.streams) {
            // An ORB that was shut down has destroyed the adapter.
            _ = streams.stop();
        }
        outcome
    }
}

/// Numbers of the service in the text format of Prometheus.
fn render(streams: &AvStreams) -> String {
    let (objects, flows) = streams.counts();
    format!(
        "# HELP spandrel_av_objects Devices, end points and controls of streams.\n# TYPE spandrel_av_objects gauge\n\
         spandrel_av_objects {objects}\n# HELP spandrel_av_flows Flows with a connection.\n\
         # TYPE spandrel_av_flows gauge\nspandrel_av_flows {flows}\n"
    )
}

/// Serves a device until the process is told to end.
///
/// # Errors
/// Wrong options; an address in use; no naming service for `--publish`.
pub(crate) fn serve(args: &Args) -> Result<(), Failure> {
    let served = Served::start(args, PORT)?;
    let Some(line) = served.device_line()? else {
        return Err(Failure::usage(anyhow!("a device has flows: --source, --pattern or --sink names one")));
    };
    served.run(args, |served| {
        let object = served.device.as_ref().map(|(device, _)| device.clone());
        let bind = |name: &String| object.map(|object| Publication::new(&served.daemon, vec![(name.clone(), object)]));
        let published = args.publish.as_ref().and_then(bind);
        served.daemon.serve_published(&[line], published.transpose()?)
    })
}
