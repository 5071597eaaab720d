//! Commands that bind devices, and that control the streams of any ORB.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use spandrel::net::error::excerpt;
use spandrel::services::av_streams::{
    FlowState, FlowStatus, MediaControl, MmDevice, Position, PositionKey, PositionOrigin, QoS, StreamCtrl, StreamEvent,
    StreamQoS,
};
use spandrel::services::cos_property_service::{Property, PropertySet};
use spandrel::types::{Any, Interface};
use spandrel_daemon::Failure;

use crate::device::Served;
use crate::options::{Args, CONTROL_KEY, Change, DEVICE_KEY, Devices, MEDIA_KEY, PORT, Stream};

/// The time between two looks at the states of a stream's flows.
const LOOK: Duration = Duration::from_millis(50);
/// The properties that are read at a time.
const MAX_PROPERTIES: u32 = 1_000;

/// The object at an address or URL, with the interface.
fn object<I: Interface + 'static>(args: &Args, address: &str, key: &str) -> Result<I, Failure> {
    let served = args.daemon.served_object(Some(address), PORT, (key, key), args.limits.call())?;
    let narrowed = served.object.narrow().map_err(anyhow::Error::from);
    narrowed.with_context(|| format!("cannot use the {key} at {}", served.address)).map_err(Failure::failed)
}

/// The wishes of the command line for all flows.
fn qos(wishes: &[String]) -> Result<StreamQoS, Failure> {
    let wish = |text: &String| {
        let parts = text.split_once('=').and_then(|(name, value)| Some((name, value.parse::<u32>().ok()?)));
        let (name, value) = parts.ok_or_else(|| {
            Failure::usage(anyhow!("invalid value `{text}` for --qos: expected NAME=NUMBER, such as frame_rate=50"))
        })?;
        let property_value = Any::new(value).map_err(Failure::failed)?;
        Ok(Property { property_name: name.to_owned(), property_value })
    };
    let parameters = wishes.iter().map(wish).collect::<Result<Vec<_>, Failure>>()?;
    let all = QoS { qo_s_type: String::new(), qo_s_params: parameters };
    Ok(if wishes.is_empty() { Vec::new() } else { vec![all] })
}

/// The line about wishes that were reduced.
fn granted(is_met: bool, qos: &[QoS]) -> Option<String> {
    let values = qos.iter().flat_map(|qos| &qos.qo_s_params);
    let text = |property: &Property| {
        let value = property.property_value.extract::<u32>().map_or_else(|_| "?".to_owned(), |value| value.to_string());
        format!("{}={value}", property.property_name)
    };
    (!is_met).then(|| format!("reduced: {}\n", values.map(text).collect::<Vec<_>>().join(" ")))
}

/// Binds two devices by a control in this process, and starts their flows. Ends with the stream.
///
/// # Errors
/// Wrong options; devices that cannot be bound; a party that is lost.
pub(crate) fn play(args: &Args, devices: &Devices) -> Result<(), Failure> {
    let served = Served::start(args, 0)?;
    served.run(args, |served| {
        let own = served.device.as_ref().map(|(device, _)| device.clone().unchecked_narrow::<MmDevice>());
        let b_device: MmDevice = match (&devices.b_device, own) {
            (Some(address), _) => object(args, address, DEVICE_KEY)?,
            (None, Some(own)) => own,
            (None, None) => {
                let error =
                    "the second device is missing: name it, or give this process flows (--sink, --source, --pattern)";
                return Err(Failure::usage(anyhow!(error)));
            }
        };
        let a_device: MmDevice = object(args, &devices.a_device, DEVICE_KEY)?;
        let mut qos = qos(&devices.qos)?;
        let object = served.streams().new_control().map_err(Failure::failed)?;
        let orb = served.daemon.orb();
        orb.set_object_key_alias(CONTROL_KEY, &object).map_err(Failure::failed)?;
        // The parties call the control while it binds them.
        orb.accept_connections();
        let control: StreamCtrl = object.clone().unchecked_narrow();
        let is_met = control
            .bind_devs(Some(&a_device), Some(&b_device), &mut qos, &devices.flow)
            .map_err(|error| Failure::failed(anyhow!("cannot bind the devices: {error}")))?;
        if let Some(line) = granted(is_met, &qos) {
            spandrel_daemon::print(&line)?;
        }
        control.start(&[]).map_err(|error| Failure::failed(anyhow!("cannot start the flows: {error}")))?;

        let lines: Vec<String> =
            [Some(format!("{CONTROL_KEY} {}", served.daemon.url(CONTROL_KEY, &object)?)), served.device_line()?]
                .into_iter()
                .flatten()
                .collect();
        let end = {
            let (control, orb) = (control.clone(), orb.clone());
            let is_first = std::sync::atomic::AtomicBool::new(true);
            // The parties are told before the ORB shuts down.
            Arc::new(move || {
                if is_first.swap(false, std::sync::atomic::Ordering::Relaxed) {
                    let (control, orb) = (control.clone(), orb.clone());
                    std::thread::spawn(move || {
                        _ = control.destroy(&[]);
                        _ = orb.begin_shutdown();
                    });
                }
            })
        };
        let at_end = Arc::clone(&end);
        let wait = || {
            std::thread::spawn(move || {
                while !has_ended(&control) {
                    std::thread::sleep(LOOK);
                }
                end();
            });
            orb.run();
        };
        spandrel_daemon::serve(&lines, &|| Ok(()), move || at_end(), wait)
    })
}

/// Whether all flows of a stream have ended, or the stream has.
fn has_ended(control: &StreamCtrl) -> bool {
    let names = control.get_property_value("Flows").ok().and_then(|names| names.extract::<Vec<String>>().ok());
    let Some(names) = names else { return true };
    let is_dead = |name: &String| {
        let state = control.get_property_value(&format!("{name}_state")).ok();
        state.is_none_or(|state| state.extract::<FlowState>().is_ok_and(|state| state == FlowState::Dead))
    };
    names.iter().all(is_dead)
}

/// Binds two devices by a control of the first one, whose reference is printed.
///
/// # Errors
/// Devices that cannot be reached or bound.
pub(crate) fn bind(args: &Args, devices: &Devices) -> Result<(), Failure> {
    let missing = || Failure::usage(anyhow!("the second device is missing: `bind` names both"));
    let a_device: MmDevice = object(args, &devices.a_device, DEVICE_KEY)?;
    let b_device: MmDevice = object(args, devices.b_device.as_ref().ok_or_else(missing)?, DEVICE_KEY)?;
    let mut qos = qos(&devices.qos)?;
    let bound = a_device.bind(Some(&b_device), &mut qos, &devices.flow);
    let (control, is_met) = bound.map_err(|error| Failure::failed(anyhow!("cannot bind the devices: {error}")))?;
    let control = control
        .ok_or_else(|| Failure::failed(anyhow!("the device {} has made no control", excerpt(&devices.a_device))))?;
    let reduced = granted(is_met, &qos).unwrap_or_default();
    spandrel_daemon::print(&format!("{}\n{reduced}", control.as_object()))
}

fn control(args: &Args, stream: &Stream) -> Result<StreamCtrl, Failure> {
    object(args, &stream.control, CONTROL_KEY)
}

/// Starts flows of a stream.
///
/// # Errors
/// A control that cannot be reached; unknown flows.
pub(crate) fn start(args: &Args, stream: &Stream) -> Result<(), Failure> {
    let started = control(args, stream)?.start(&stream.flows);
    started.map_err(|error| Failure::failed(anyhow!("cannot start the flows: {error}")))
}

/// Stops flows of a stream.
///
/// # Errors
/// As [`start`].
pub(crate) fn stop(args: &Args, stream: &Stream) -> Result<(), Failure> {
    let stopped = control(args, stream)?.stop(&stream.flows);
    stopped.map_err(|error| Failure::failed(anyhow!("cannot stop the flows: {error}")))
}

/// Ends flows of a stream.
///
/// # Errors
/// As [`start`].
pub(crate) fn destroy(args: &Args, stream: &Stream) -> Result<(), Failure> {
    let destroyed = control(args, stream)?.destroy(&stream.flows);
    destroyed.map_err(|error| Failure::failed(anyhow!("cannot end the flows: {error}")))
}

/// Prints the properties of an object of streams.
///
/// # Errors
/// An object that cannot be reached, or has no properties.
pub(crate) fn show(args: &Args, address: &str) -> Result<(), Failure> {
    let properties: PropertySet = object(args, address, DEVICE_KEY)?;
    let read = properties.get_all_properties(MAX_PROPERTIES).map_err(anyhow::Error::from);
    let (mut properties, _) = read.context("cannot read the properties").map_err(Failure::failed)?;
    properties.sort_by(|a, b| a.property_name.cmp(&b.property_name));
    let line = |property: &Property| format!("{}: {}\n", property.property_name, value(&property.property_value));
    spandrel_daemon::print(&properties.iter().map(line).collect::<String>())
}

/// Changes the position of a device's sources, and prints it.
///
/// # Errors
/// A control that cannot be reached; a position that the medium does not have.
pub(crate) fn medium(args: &Args, address: &str, change: Option<Change>, at: Option<&str>) -> Result<(), Failure> {
    let origin = if at.is_none_or(|at| at.starts_with(['+', '-'])) {
        PositionOrigin::RelativePosition
    } else {
        PositionOrigin::AbsolutePosition
    };
    let value = at.unwrap_or("0").parse();
    let value = value.map_err(|_| {
        Failure::usage(anyhow!("invalid value `{}` for --at: expected a number of frames", at.unwrap_or_default()))
    })?;
    let position = Position { origin, key: PositionKey::SampleCount, value };
    let media: MediaControl = object(args, address, MEDIA_KEY)?;
    let changed = match change {
        None => Ok(()),
        Some(Change::Seek) => media.set_media_position(&position).map_err(|error| error.to_string()),
        Some(Change::Pause) => media.pause(&position).map_err(|error| error.to_string()),
        Some(Change::Resume) => media.resume(&position).map_err(|error| error.to_string()),
    };
    changed.map_err(|error| Failure::failed(anyhow!("cannot go to this position: {error}")))?;
    let at = |key| {
        let position = media.get_media_position(PositionOrigin::AbsolutePosition, key);
        position
            .map(|position| position.value)
            .map_err(|error| Failure::failed(anyhow!("cannot read the position: {error}")))
    };
    let [octets, frames, millis] = [PositionKey::ByteCount, PositionKey::SampleCount, PositionKey::MediaTime].map(at);
    spandrel_daemon::print(&format!("position: {} octets, {} frames, {} ms\n", octets?, frames?, millis?))
}

/// A property's value as text.
fn value(any: &Any) -> String {
    let text = || any.extract::<String>().ok();
    let texts = || any.extract::<Vec<String>>().ok().map(|texts| texts.join(" "));
    let number = || any.extract::<u32>().ok().map(|number| number.to_string());
    let state = || any.extract::<FlowState>().ok().map(|state| state_name(state).to_owned());
    let status = || any.extract::<FlowStatus>().ok().map(|status| state_name(status.status).to_owned());
    let event = || {
        let event = any.extract::<StreamEvent>().ok()?;
        Some(format!("{} {}", event.property_name, event.property_value.extract::<String>().unwrap_or_default()))
    };
    let shown = text().or_else(texts).or_else(number).or_else(state).or_else(status).or_else(event);
    shown.unwrap_or_else(|| "(a value of another type)".to_owned())
}

fn state_name(state: FlowState) -> &'static str {
    match state {
        FlowState::Stopped => "stopped",
        FlowState::Started => "started",
        FlowState::Dead => "dead",
    }
}
