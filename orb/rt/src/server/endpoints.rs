//! The endpoints of lanes.

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_orb::{Endpoint, Orb};
use spandrel_server::{AcceptedSockets, dedicated_addresses, open_dedicated_endpoint, server_endpoints};
use spandrel_sync::{Arc, thread};

use crate::policies::ThreadpoolId;
use crate::{InvalidThreadpool, Priority, RtServerOrb, ThreadPool};

use super::LaneRequest;

impl RtServerOrb {
    /// Has an ORB listen for one lane of a pool, by one or more protocols, and returns the hosts and ports in references.
    /// The addresses together are the endpoint of the lane: it has a thread that reads, at the native priority of the lane,
    /// and connections, memory and limits of its own. Clients of other endpoints cannot delay its requests before they are
    /// in the lane.
    ///
    /// References with SERVER_DECLARED that are created afterwards have all addresses of the lane of their object, in place
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
    /// let addresses = rt_orb.listen_for_lane(&orb, pool, urgent, &[Endpoint::new("127.0.0.1", 0)])?;
    /// assert_ne!(addresses, orb.listen()?);
    /// # orb.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// BAD_PARAM if there is no such pool, no lane of exactly this priority, or no address, and for datagrams, whose requests
    /// pass threads of the ORB; BAD_INV_ORDER if the lane has an endpoint in this ORB, after shutdown, or before the root
    /// adapter was created; INITIALIZE if the ORB cannot listen there; NO_RESOURCES without a thread.
    pub fn listen_for_lane(
        &self,
        orb: &Orb,
        pool: ThreadpoolId,
        lane: Priority,
        endpoints: &[Endpoint],
    ) -> Result<Vec<(String, u16)>, SystemException> {
        let threads = self.pool_to_listen_for(pool)?;
        if endpoints.is_empty() {
            return Err(bad_param("the endpoint of a lane has one address at least"));
        }
        if let Some(endpoint) = endpoints.iter().find(|endpoint| endpoint.scheme() == "diop") {
            return Err(bad_param(format!(
                "{endpoint} cannot be the endpoint of a lane: threads of the ORB run requests by datagram"
            )));
        }
        let number = threads
            .endpoint_of(lane)
            .filter(|_| threads.has_lane(lane))
            .ok_or_else(|| bad_param(format!("the thread pool {pool} has no lane of the priority {lane}")))?;
        let of_pool = Arc::downgrade(&threads);
        let sockets = AcceptedSockets(Arc::new(move |scheme: &str, opened| {
            let protocol = of_pool.upgrade()?.socket_properties(scheme)?;
            Some(protocol.sockets(opened))
        }));
        let (scheduling, orb, endpoints) = (self.scheduling().clone(), orb.clone(), endpoints.to_vec());
        // The thread that reads inherits the native priority of the one that opens the endpoint.
        let open = move || {
            scheduling.apply(lane)?;
            open_dedicated_endpoint(&orb, number, &endpoints, sockets)
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

    /// Has an ORB listen for each lane of a pool without an endpoint, by each protocol by which the ORB itself listens, except
    /// datagrams: [`listen_for_lane`](Self::listen_for_lane) with addresses that are derived from those of the ORB.
    ///
    /// The system chooses the ports, with the host and interface of the ORB's endpoint. The path of a UNIX-domain socket or
    /// shared memory is that of the ORB with the numbers of the pool and the priority, such as `/run/plant.sock.1.20000`.
    ///
    /// # Errors
    /// As `listen_for_lane`; also BAD_PARAM if the pool has no lanes, or the ORB listens by no protocol that a lane may have.
    /// The lanes before the one that fails keep their endpoints.
    pub fn listen_for_lanes(&self, orb: &Orb, pool: ThreadpoolId) -> Result<(), SystemException> {
        let threads = self.pool_to_listen_for(pool)?;
        if threads.idle_priority().is_some() {
            return Err(bad_param(format!("the thread pool {pool} has no lanes")));
        }
        for lane in threads.statistics().into_iter().map(|lane| lane.priority) {
            if threads.endpoint_of(lane).is_none_or(|number| dedicated_addresses(orb, number).is_none()) {
                let of_orb = server_endpoints(orb);
                let endpoints: Vec<_> =
                    of_orb.iter().filter_map(|endpoint| lane_endpoint(endpoint, pool, lane)).collect();
                self.listen_for_lane(orb, pool, lane, &endpoints)?;
            }
        }
        Ok(())
    }

    fn pool_to_listen_for(&self, pool: ThreadpoolId) -> Result<Arc<ThreadPool<LaneRequest>>, SystemException> {
        self.threadpool(pool).ok_or_else(|| bad_param(InvalidThreadpool(pool).to_string()))
    }
}

fn bad_param(text: impl Into<String>) -> SystemException {
    SystemException::bad_param(0, CompletionStatus::No).with_detail(text.into())
}

/// The endpoint of a lane by the protocol of an endpoint of the ORB; `None` for a protocol that lanes do not have.
fn lane_endpoint(of_orb: &Endpoint, pool: ThreadpoolId, lane: Priority) -> Option<Endpoint> {
    let scheme = of_orb.scheme();
    let address = match scheme {
        "diop" | "bidir" => return None,
        "uds" | "shm" if of_orb.address().is_empty() => String::new(),
        "uds" | "shm" => format!("{}.{pool}.{lane}", of_orb.address()),
        _ => match of_orb.host_and_port() {
            Ok((host, _)) if host.contains(':') => format!("[{host}]:0"),
            Ok((host, _)) => format!("{host}:0"),
            Err(_) => return None,
        },
    };
    // The published hosts are those of the ORB, with the port of the lane.
    let options = of_orb.options().filter(|(name, _)| *name != "portspan").map(|(name, value)| match name {
        "publish" => (name, value.split(',').map(without_port).collect::<Vec<_>>().join(",")),
        _ => (name, value.to_owned()),
    });
    Some(options.fold(Endpoint::of(scheme, address), |endpoint, (name, value)| endpoint.with(name, value)))
}

/// The host of an address, which may have a port.
fn without_port(address: &str) -> &str {
    match address.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_have_addresses_of_their_own_by_the_protocols_of_the_orb() {
        let derived = |endpoint: &str| {
            let endpoint = lane_endpoint(&endpoint.parse().unwrap(), 3, Priority::MAX);
            endpoint.map(|endpoint| endpoint.to_string())
        };
        for (of_orb, expected) in [
            ("iiop://host:5000/portspan=10", Some("iiop://host:0")),
            ("iiop://[::1]:5000/interface=lo", Some("iiop://[::1]:0/interface=lo")),
            ("iiop://:0", Some("iiop://:0")),
            ("ssliop://*:5/publish=a:1,[::1]:2,[::1],addr", Some("ssliop://*:0/publish=a,[::1],[::1],addr")),
            ("uds:///run/plant|mode=660", Some("uds:///run/plant.3.32767|mode=660")),
            ("shm://", Some("shm://")),
            ("diop://host:1", None),
            ("bidir://", None),
        ] {
            assert_eq!(derived(of_orb).as_deref(), expected, "{of_orb}");
        }
    }
}
