//! What an ORB tells those who watch it: all its numbers, some of which are looked at only when somebody asks.

#[cfg(feature = "asynchronous")]
use std::net::SocketAddr;

#[cfg(feature = "asynchronous")]
use spandrel_giop::SystemException;

use super::Orb;
#[cfg(feature = "asynchronous")]
use super::WeakOrb;
#[cfg(feature = "asynchronous")]
use crate::statistics::Level;

impl Orb {
    /// All that was counted and measured, as Prometheus reads it: served as
    /// [`statistics::CONTENT_TYPE`](crate::statistics::CONTENT_TYPE). Times of calls are there if they are
    /// [wanted](crate::OrbBuilder::metrics).
    #[must_use]
    pub fn render_metrics(&self) -> String {
        #[cfg(feature = "asynchronous")]
        self.update_levels();
        let mut text = self.statistics().render();
        if let Some(metrics) = self.diagnostics().metrics() {
            metrics.render(&mut text);
        }
        text
    }

    /// Where metrics are told, if they are ([`OrbBuilder::metrics_endpoint`](crate::OrbBuilder::metrics_endpoint)): with the port that the
    /// system chose, where it was to choose one.
    #[must_use]
    #[cfg(feature = "asynchronous")]
    pub fn metrics_endpoint(&self) -> Option<SocketAddr> {
        self.diagnostics().told_at()
    }

    /// Begins to tell metrics, if that is wanted. The ORB is held only while they are told.
    ///
    /// # Errors
    /// INITIALIZE if the endpoint cannot be listened on.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn serve_metrics(&self) -> Result<(), SystemException> {
        let Some(addr) = self.settings().diagnostics.endpoint else { return Ok(()) };
        let orb = WeakOrb::of(self);
        let render = move || orb.upgrade().map(|orb| orb.render_metrics()).unwrap_or_default();
        self.diagnostics().tell(addr, Box::new(render))
    }

    /// Looks at all that is not counted while it comes and goes.
    #[cfg(feature = "asynchronous")]
    fn update_levels(&self) {
        let statistics = self.statistics();
        let set = |level, count: usize| statistics.set(level, i64::try_from(count).unwrap_or(i64::MAX));
        set(Level::CallsParked, self.peers().parked());
        #[cfg(feature = "server")]
        {
            set(Level::JobsOfMain, self.main().jobs());
            set(Level::RequestsHeld, self.adapter().map_or(0, |adapter| adapter.held()));
            let counts = self.server().look();
            set(Level::ThreadsOfConnections, counts.threaded);
            set(Level::ThreadsOfPool, counts.pooled);
            set(Level::RequestsQueued, counts.queued);
            set(Level::RequestsDeferred, counts.deferred);
            set(Level::OctetsReceived, counts.octets);
        }
    }
}
