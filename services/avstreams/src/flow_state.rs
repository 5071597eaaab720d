//! The state that the sender or the receiver of a flow shares with those that control it.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use spandrel::net::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use spandrel::net::sync::{Arc, Condition, Mutex, time::Deadline};
use spandrel::ssliop::Ssliop;

use crate::limits::AvLimits;
use crate::media::FlowDefinition;
use crate::sfp::FrameFields;
use crate::statistics::Counters;

/// A receiver of a flow that is sent by datagrams.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) data: SocketAddr,
    pub(crate) control: SocketAddr,
}

/// The state that the sender or the receiver of a flow shares with those that control it.
pub(crate) struct FlowShared {
    pub(crate) definition: FlowDefinition,
    pub(crate) limits: AvLimits,
    /// The certificate and the authorities of flows by TLS.
    pub(crate) tls: Option<Ssliop>,
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Condition,
    pub(crate) counters: Counters,
    pub(crate) frame_rate: AtomicU32,
    pub(crate) dscp: AtomicU8,
    /// The flows with a connection, of the service.
    pub(crate) active: Arc<AtomicUsize>,
    /// The flows of the service that share a thread.
    pub(crate) paced_flows: Arc<dyn PacedFlows>,
    /// The number of this flow among them; zero for a flow that is none of them.
    pub(crate) paced: AtomicU64,
}

/// The flows that share a thread.
pub(crate) trait PacedFlows: Send + Sync {
    /// Lets the flow with this number look at its state at once.
    fn wake(&self, number: u64);
}

/// The part that changes.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) is_started: bool,
    pub(crate) is_connected: bool,
    /// Why the flow has ended.
    pub(crate) death: Option<String>,
    pub(crate) targets: Vec<Target>,
    /// The socket of a multipoint flow.
    pub(crate) socket: Option<UdpSocket>,
    pub(crate) fields: FrameFields,
    pub(crate) source_id: Option<u32>,
    pub(crate) on_death: Option<DeathListener>,
}

/// The function that is called with the reason when a flow has ended.
pub(crate) type DeathListener = Box<dyn Fn(&str) + Send>;

/// The next action of a flow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Command {
    /// The flow is started: frames are to be sent and received.
    Run,
    /// The flow is stopped.
    Pause,
    /// The flow has ended.
    End,
}

/// Ends a flow with its sender or receiver, also if the medium panics.
pub(crate) struct FlowGuard(Arc<FlowShared>);

impl FlowGuard {
    /// The guard of a flow that has [begun](FlowShared::begin).
    pub(crate) fn new(shared: &Arc<FlowShared>) -> Self {
        Self(Arc::clone(shared))
    }

    pub(crate) fn shared(&self) -> &FlowShared {
        &self.0
    }
}

/// Starts a thread for one flow. Without a thread, the end of the closure drops the guard of the flow.
pub(crate) fn spawn(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name("spandrel-flow".to_owned()).spawn(run).map(drop)
}

impl Drop for FlowGuard {
    fn drop(&mut self) {
        self.0.die("the medium of the flow has failed");
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl FlowShared {
    pub(crate) fn new(
        definition: FlowDefinition,
        limits: AvLimits,
        tls: Option<Ssliop>,
        active: &Arc<AtomicUsize>,
        paced_flows: Arc<dyn PacedFlows>,
    ) -> Self {
        let (frame_rate, dscp) = (AtomicU32::new(definition.frame_rate), AtomicU8::new(definition.dscp));
        Self {
            definition,
            limits,
            tls,
            state: Mutex::default(),
            changed: Condition::default(),
            counters: Counters::default(),
            frame_rate,
            dscp,
            active: Arc::clone(active),
            paced_flows,
            paced: AtomicU64::default(),
        }
    }

    /// Marks the flow as connected, within the limit of flows.
    pub(crate) fn begin(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.is_connected {
            return Err(io::Error::other("the flow has a connection"));
        }
        if let Some(death) = &state.death {
            return Err(io::Error::other(format!("the flow has ended: {death}")));
        }
        if self.active.fetch_add(1, Ordering::Relaxed) >= self.limits.flows {
            self.active.fetch_sub(1, Ordering::Relaxed);
            return Err(io::Error::other(format!("there are {} flows, as many as allowed", self.limits.flows)));
        }
        state.is_connected = true;
        Ok(())
    }

    pub(crate) fn abort(&self) {
        self.state.lock().is_connected = false;
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// Makes the sender or the receiver look at the state.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
        let number = self.paced.load(Ordering::Relaxed);
        if number > 0 {
            self.paced_flows.wake(number);
        }
    }

    /// Ends the flow. The first reason holds.
    pub(crate) fn die(&self, reason: &str) {
        let listener = {
            let mut state = self.state.lock();
            if state.death.is_some() {
                return;
            }
            state.death = Some(reason.to_owned());
            state.on_death.take()
        };
        self.wake();
        tracing::debug!(flow = self.definition.name, reason, "a flow has ended");
        if let Some(listener) = listener {
            listener(reason);
        }
    }

    /// The reason of the end; empty before it.
    pub(crate) fn death(&self) -> String {
        self.state.lock().death.clone().unwrap_or_default()
    }

    pub(crate) fn command(&self) -> Command {
        let state = self.state.lock();
        match (&state.death, state.is_started) {
            (Some(_), _) => Command::End,
            (None, true) => Command::Run,
            (None, false) => Command::Pause,
        }
    }

    /// Waits until the time, or until the command is another one.
    pub(crate) fn wait_until(&self, time: Instant, while_command: Command) -> Command {
        let deadline = Deadline::after(time.saturating_duration_since(Instant::now()));
        let mut state = self.state.lock();
        loop {
            let command = match (&state.death, state.is_started) {
                (Some(_), _) => Command::End,
                (None, true) => Command::Run,
                (None, false) => Command::Pause,
            };
            if command != while_command || self.changed.wait_until(&mut state, deadline).timed_out() {
                return command;
            }
        }
    }

    /// The receivers by datagrams, if they are others than these.
    pub(crate) fn targets(&self) -> Vec<Target> {
        self.state.lock().targets.clone()
    }

    pub(crate) fn fields(&self) -> FrameFields {
        self.state.lock().fields
    }

    pub(crate) fn source_id(&self) -> Option<u32> {
        self.state.lock().source_id
    }

    pub(crate) fn dscp(&self) -> u8 {
        self.dscp.load(Ordering::Relaxed)
    }

    /// The time between two frames; `None` for a source that paces itself.
    pub(crate) fn frame_interval(&self) -> Option<Duration> {
        let rate = self.frame_rate.load(Ordering::Relaxed);
        (rate > 0).then(|| Duration::from_secs(1) / rate)
    }
}
