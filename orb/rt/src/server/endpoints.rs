//! The endpoints of lanes.

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_orb::{Endpoint, Orb};
use spandrel_server::{AcceptedSockets, HandedOverRequest, open_dedicated_endpoint};
use spandrel_sync::{Arc, thread};

use crate::policies::ThreadpoolId;
use crate::{InvalidThreadpool, Priority, RtOrb};

impl RtOrb<HandedOverRequest> {
    /// Has an ORB listen at an endpoint for one lane of a pool, and returns the hosts and ports in references. The endpoint
    /// has a thread that reads, at the native priority of the lane, and connections, memory and limits of its own: clients
    /// of other endpoints cannot delay its requests before they are in the lane.
    ///
    /// References with SERVER_DECLARED that are created afterwards have the addresses of the lane of their object, in place
    /// of those of the ORB; an adapter's references with CLIENT_PROPAGATED have those of the ORB. Requests at the endpoint
    /// that are not for the lane are refused with INV_POLICY (minor code 1): those of another priority, and all for adapters
    /// without this pool. The endpoint is closed when the ORB is shut down.
    ///
    /// Accepted sockets have the properties of the [`ServerProtocolPolicy`](crate::policies::ServerProtocolPolicy) of adapters
    /// with the pool, also if these are created later.
    ///
    /// ```
    /// use spandrel_orb::{Endpoint, Orb};
    /// use spandrel_poa::Poa;
    /// use spandrel_rt::{LaneSettings, LinearMapping, PoolSettings, Priority, RtServerOrb, Scheduling, SchedulingClass};
    /// use spandrel_sync::Arc;
    ///
    /// let orb = Orb::builder().build()?;
    /// let root = Poa::root(&orb)?;
    /// let rt_orb = RtServerOrb::new(Scheduling::new(SchedulingClass::Fifo, Arc::new(LinearMapping)));
    /// let urgent = Priority::new(20_000)?;
    /// let lane = |priority| LaneSettings { priority, static_threads: 2, dynamic_threads: 0 };
    /// let pool = rt_orb.create(PoolSettings::with_lanes(vec![lane(Priority::MIN), lane(urgent)]))?;
    /// let addresses = rt_orb.listen_for_lane(&orb, pool, urgent, &Endpoint::new("127.0.0.1", 0))?;
    /// assert_ne!(addresses, orb.listen()?);
    /// # orb.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// BAD_PARAM if there is no such pool, or no lane of exactly this priority; BAD_INV_ORDER if the lane has an endpoint in
    /// this ORB, after shutdown, or before the root adapter was created; INITIALIZE if the ORB cannot listen there;
    /// NO_RESOURCES without a thread.
    pub fn listen_for_lane(
        &self,
        orb: &Orb,
        pool: ThreadpoolId,
        lane: Priority,
        endpoint: &Endpoint,
    ) -> Result<Vec<(String, u16)>, SystemException> {
        let bad_param = |text: String| SystemException::bad_param(0, CompletionStatus::No).with_detail(text);
        let threads = self.threadpool(pool).ok_or_else(|| bad_param(InvalidThreadpool(pool).to_string()))?;
        let number = threads
            .endpoint_of(lane)
            .filter(|_| threads.has_lane(lane))
            .ok_or_else(|| bad_param(format!("the thread pool {pool} has no lane of the priority {lane}")))?;
        let of_pool = Arc::downgrade(&threads);
        let sockets = AcceptedSockets(Arc::new(move |scheme: &str, opened| {
            let protocol = of_pool.upgrade()?.socket_properties(scheme)?;
            Some(protocol.sockets(opened))
        }));
        let (scheduling, orb, endpoint) = (self.scheduling().clone(), orb.clone(), endpoint.clone());
        // The thread that reads inherits the native priority of the one that opens the endpoint.
        let open = move || {
            scheduling.apply(lane)?;
            open_dedicated_endpoint(&orb, number, &endpoint, sockets)
        };
        let no_thread = |error: std::io::Error| {
            SystemException::no_resources(0, CompletionStatus::No)
                .with_detail("cannot start the thread that opens the endpoint of a lane")
                .with_source(error)
        };
        let opening = thread::Builder::new().name("rt-listen".to_owned()).spawn(open).map_err(no_thread)?;
        let opened = opening.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(opened.hosts)
    }
}
