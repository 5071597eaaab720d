//! One party's end of a flow: its address, its connection and its state.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use spandrel::net::sync::Arc;
use spandrel::net::sync::atomic::{AtomicUsize, Ordering};
use spandrel::services::av_streams::FlowState;
use spandrel::ssliop::Ssliop;

use crate::admission::show;
use crate::flow_spec::{Carrier, FlowAddress, FlowProtocol};
use crate::flow_state::{FlowGuard, FlowShared, Target, spawn};
use crate::limits::AvLimits;
use crate::media::{FlowDefinition, Medium};
use crate::pacer::{PacedFlow, Pacer};
use crate::sfp::FrameFields;
use crate::statistics::FlowStatistics;
use crate::{receiver, sender};

/// One party's end of a flow. Dropping it ends the flow.
pub(crate) struct FlowEnd {
    pub(crate) shared: Arc<FlowShared>,
    pacer: Arc<Pacer>,
}

impl FlowEnd {
    pub(crate) fn new(
        definition: FlowDefinition,
        limits: AvLimits,
        tls: Option<Ssliop>,
        active: &Arc<AtomicUsize>,
        pacer: &Arc<Pacer>,
    ) -> Self {
        let paced_flows = Arc::<Pacer>::clone(pacer);
        Self {
            shared: Arc::new(FlowShared::new(definition, limits, tls, active, paced_flows)),
            pacer: Arc::clone(pacer),
        }
    }

    pub(crate) fn definition(&self) -> &FlowDefinition {
        &self.shared.definition
    }

    pub(crate) fn is_source(&self) -> bool {
        self.definition().medium.is_source()
    }

    /// Opens an address for the sender of the flow, and starts the thread that receives. A group is joined.
    pub(crate) fn listen(
        &self,
        carrier: Carrier,
        protocol: FlowProtocol,
        host: IpAddr,
        group: Option<&FlowAddress>,
    ) -> io::Result<FlowAddress> {
        let Medium::Sink(create) = &self.definition().medium else {
            return Err(io::Error::other("the device sends this flow"));
        };
        self.require_carrier(carrier)?;
        self.shared.begin()?;
        let mut sink = create();
        let opened = match sink.failure() {
            Some(reason) => Err(io::Error::other(reason)),
            None => receiver::open(&self.shared, carrier, protocol, host, group),
        };
        let (address, receiver) = opened.inspect_err(|_| self.shared.abort())?;
        let guard = FlowGuard::new(&self.shared);
        spawn(move || {
            let shared = guard.shared();
            shared.die(&receiver.run(shared, sink.as_mut()));
            sink.flow_ended(&shared.death(), &shared.counters.snapshot());
        })?;
        Ok(address)
    }

    /// Connects to the address of a receiver, and sends in the thread of all flows or in one of its own. Further receivers
    /// of a flow by datagrams are added.
    pub(crate) fn connect(&self, to: &FlowAddress, protocol: FlowProtocol, is_multipoint: bool) -> io::Result<()> {
        let Medium::Source(create) = &self.definition().medium else {
            return Err(io::Error::other("the device receives this flow"));
        };
        self.require_carrier(to.carrier)?;
        self.shared.begin()?;
        let source = create();
        let opened = match source.failure() {
            Some(reason) => Err(io::Error::other(reason)),
            None => sender::open(&self.shared, to, protocol, is_multipoint),
        };
        let sender = opened.inspect_err(|_| self.shared.abort())?;
        if let Err(error) = self.add_target(to) {
            self.shared.abort();
            return Err(error);
        }
        let socket = sender.socket().inspect_err(|_| self.shared.abort())?;
        self.shared.state.lock().socket = socket;
        let guard = FlowGuard::new(&self.shared);
        if sender.is_paced(&self.shared) {
            return self.pacer.add(PacedFlow::new(guard, sender, source));
        }
        spawn(move || sender.run(guard.shared(), source))
    }

    /// Shows the token at a further receiver of a multipoint flow, and adds it.
    pub(crate) fn add_receiver(&self, to: &FlowAddress) -> io::Result<()> {
        let socket = self.shared.state.lock().socket.as_ref().map(UdpSocket::try_clone).transpose()?;
        let socket = socket.ok_or_else(|| io::Error::other("the flow has one receiver"))?;
        if let Some(token) = &to.token {
            show(&socket, to.data, token, self.shared.limits.connect)?;
        }
        self.add_target(to)
    }

    /// Adds a receiver to a flow that is sent by datagrams.
    fn add_target(&self, to: &FlowAddress) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        if state.targets.len() >= self.shared.limits.receivers {
            return Err(io::Error::other(format!("a flow has at most {} receivers", self.shared.limits.receivers)));
        }
        state.targets.push(Target { data: to.data, control: to.control() });
        Ok(())
    }

    /// Takes a receiver out of the flow. Returns the number of those that remain.
    pub(crate) fn remove_target(&self, data: SocketAddr) -> usize {
        let mut state = self.shared.state.lock();
        state.targets.retain(|target| target.data != data);
        state.targets.len()
    }

    pub(crate) fn set_started(&self, is_started: bool) {
        self.shared.state.lock().is_started = is_started;
        self.shared.wake();
    }

    pub(crate) fn set_fields(&self, fields: FrameFields) {
        self.shared.state.lock().fields = fields;
    }

    pub(crate) fn set_source_id(&self, id: u32) {
        self.shared.state.lock().source_id = Some(id);
    }

    /// Changes the pace of a source. It holds from the next frame on.
    pub(crate) fn set_frame_rate(&self, rate: u32) {
        self.shared.frame_rate.store(rate, Ordering::Relaxed);
        self.shared.wake();
    }

    pub(crate) fn set_dscp(&self, dscp: u8) {
        self.shared.dscp.store(dscp & 0x3f, Ordering::Relaxed);
    }

    /// Sets the function that learns of the end of the flow, unless this party ends it.
    pub(crate) fn on_death(&self, tell: impl Fn(&str) + Send + 'static) {
        self.shared.state.lock().on_death = Some(Box::new(tell));
    }

    pub(crate) fn close(&self) {
        self.shared.state.lock().on_death = None;
        self.shared.die("the flow was closed");
    }

    /// Ends the flow since the control of its stream is lost, which is not told.
    pub(crate) fn end_without_control(&self, reason: &str) {
        self.shared.state.lock().on_death = None;
        self.shared.die(reason);
    }

    /// Begins anew after an end, as `disconnect` and a further connection do.
    pub(crate) fn renewed(&self) -> Self {
        let shared = &self.shared;
        Self::new(self.definition().clone(), shared.limits, shared.tls.clone(), &shared.active, &self.pacer)
    }

    pub(crate) fn is_connected(&self) -> bool {
        let state = self.shared.state.lock();
        state.is_connected && state.death.is_none()
    }

    pub(crate) fn state(&self) -> FlowState {
        let state = self.shared.state.lock();
        match (&state.death, state.is_started) {
            (Some(_), _) => FlowState::Dead,
            (None, true) => FlowState::Started,
            (None, false) => FlowState::Stopped,
        }
    }

    pub(crate) fn death(&self) -> Option<String> {
        self.shared.state.lock().death.clone()
    }

    pub(crate) fn statistics(&self) -> FlowStatistics {
        self.shared.counters.snapshot()
    }

    fn require_carrier(&self, carrier: Carrier) -> io::Result<()> {
        if self.definition().carriers.contains(&carrier) {
            return Ok(());
        }
        Err(io::Error::other(format!("the flow `{}` does not go by {carrier}", self.definition().name)))
    }
}

impl Drop for FlowEnd {
    fn drop(&mut self) {
        self.close();
    }
}
