//! Plugged-in transport protocols, and the ORB's choice between protocols.

use std::{
    error::Error,
    io,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use spandrel::{
    Endpoint, Orb,
    net::{
        ipc::inet::{Acceptor, Addr, Connector, Inet, Stream},
        transport::{Address, Listener, Protocol, PublishedAddresses, ServerProtocol, SocketSettings, cost},
    },
    types::IiopProfile,
};
use spandrel_cdr::TaggedComponent;
use spandrel_orb_tests::{Server, listen};

const TAG: u32 = 0x7465_7374;

/// TCP under another scheme, cheaper than IIOP; its address is a component of its own.
#[derive(Debug, Default)]
struct PluggedProtocol {
    connected: Arc<AtomicU32>,
}

impl Protocol for PluggedProtocol {
    type Stream = Stream;

    fn scheme(&self) -> &'static str {
        "courier"
    }

    fn addresses(&self, profile: &IiopProfile) -> Vec<Address> {
        let text = profile.component(TAG).and_then(|data| std::str::from_utf8(data).ok());
        text.into_iter().map(|text| Address::new("courier", text)).collect()
    }

    fn connect(&self, address: &Address, _: Option<Duration>, _: &SocketSettings) -> io::Result<Stream> {
        self.connected.fetch_add(1, Ordering::Relaxed);
        let addr: Addr = address.address().parse().map_err(io::Error::other)?;
        Connector::connect(&addr)
    }

    fn cost(&self, _: &Address) -> u32 {
        cost::SAME_HOST
    }

    fn server(protocol: &Arc<Self>) -> Option<Arc<dyn ServerProtocol>> {
        Some(Arc::<Self>::clone(protocol))
    }
}

impl ServerProtocol for PluggedProtocol {
    fn scheme(&self) -> &'static str {
        "courier"
    }

    fn listen(&self, endpoint: &Endpoint, _: &SocketSettings) -> io::Result<Listener> {
        let (host, port) = endpoint.host_and_port()?;
        let acceptor = Acceptor::open(&Addr::new(host, port)?)?;
        let address = Address::new("courier", acceptor.local_addr()?.to_string());
        let component = TaggedComponent { tag: TAG, data: address.address().as_bytes().to_vec() };
        let mut published = PublishedAddresses::default();
        published.components.push(component);
        published.addresses.push(address.clone());
        let from = |_: &_, from: &Addr| Ok(Address::new("courier", from.to_string()));
        Listener::over::<Inet>(address, acceptor, published, from)
    }
}

#[test]
fn a_plugged_in_protocol_is_used_where_its_cost_is_lower() {
    let builder = Orb::builder().protocol(PluggedProtocol::default());
    let server =
        Server::with(builder.listen(Endpoint::new("127.0.0.1", 0)).listen("courier://127.0.0.1:0".parse().unwrap()));
    let courier = PluggedProtocol::default();
    let connected = Arc::clone(&courier.connected);
    let target = server.client_with(Orb::builder().protocol(courier));
    assert_eq!(target.add(1, 2).unwrap(), 3);
    assert_eq!(connected.load(Ordering::Relaxed), 1);
    // Clients without this protocol use IIOP.
    assert_eq!(server.client().add(1, 2).unwrap(), 3);
}

#[test]
fn an_endpoint_of_an_unknown_protocol_is_refused_by_name() {
    let orb = Orb::builder().listen(Endpoint::of("pigeon", "loft")).build().unwrap();
    let refused = listen(&orb).unwrap_err();
    let refused = refused.source().expect("the error has a cause").to_string();
    assert!(refused.contains("unknown protocol `pigeon`: expected iiop"), "{refused}");
    assert!(refused.contains("`OrbBuilder::protocol` adds others"), "{refused}");
}

#[cfg(target_os = "linux")]
mod same_host {
    use std::{fs, path::PathBuf};

    use spandrel::{ObjectRef, OrbBuilder, SystemExceptionKind, types::Ior};
    use spandrel_giop::{
        ids::TAG_LOCAL_ADDRESS,
        local_address::{LocalAddress, TAG_OMNIORB_UNIX_TRANS, UnixTransport},
    };
    use spandrel_orb_tests::{
        probe::Target,
        support::{block_on, wait_until},
    };

    use super::*;

    fn uds_and_shm() -> OrbBuilder {
        Orb::builder().listen(Endpoint::new("", 0)).listen("uds://".parse().unwrap()).listen("shm://".parse().unwrap())
    }

    fn profile_of(object: &ObjectRef) -> IiopProfile {
        IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap()
    }

    fn with_profile(server: &Server, profile: &IiopProfile) -> Target {
        let ior = Ior { profiles: vec![profile.encode().unwrap()], ..server.object.ior().clone() };
        Target::unchecked_narrow(&Orb::builder().build().unwrap().reference(ior))
    }

    /// A target whose reference has altered same-host components.
    fn with_altered_addresses(server: &Server, alter: impl Fn(&mut LocalAddress)) -> Target {
        let mut profile = profile_of(&server.object);
        for component in &mut profile.components {
            if let Some(mut address) = LocalAddress::decode(component).unwrap() {
                alter(&mut address);
                *component = address.encode().unwrap();
            }
        }
        with_profile(server, &profile)
    }

    /// The same-host addresses in the server's reference.
    fn addresses(server: &Server) -> Vec<LocalAddress> {
        let profile = profile_of(&server.object);
        profile.components.iter().filter_map(|component| LocalAddress::decode(component).unwrap()).collect()
    }

    /// A profile with an unreachable IIOP address: calls succeed only over same-host transports.
    fn without_iiop(server: &Server) -> IiopProfile {
        IiopProfile { port: 1, ..profile_of(&server.object) }
    }

    #[test]
    fn a_reference_has_one_profile_with_a_component_per_transport() {
        let server = Server::with(uds_and_shm());
        assert_eq!(server.object.ior().profiles.len(), 1);
        let schemes: Vec<String> = addresses(&server).into_iter().map(|address| address.scheme).collect();
        assert_eq!(schemes, ["uds", "shm"]);
        let profile = profile_of(&server.object);
        assert_eq!(profile.port, server.port());
        let omniorbs = profile.component(TAG_OMNIORB_UNIX_TRANS).expect("for omniORB");
        let omniorbs = TaggedComponent { tag: TAG_OMNIORB_UNIX_TRANS, data: omniorbs.to_vec() };
        let omniorbs = UnixTransport::decode(&omniorbs).unwrap().unwrap();
        assert_eq!(omniorbs.path, addresses(&server)[0].address);
    }

    #[test]
    fn each_transport_works_alone() {
        let server = Server::with(uds_and_shm());
        for scheme in ["uds", "shm"] {
            let mut profile = without_iiop(&server);
            profile.components.retain(|component| match LocalAddress::decode(component).unwrap() {
                Some(address) => address.scheme == scheme,
                None => component.tag != TAG_OMNIORB_UNIX_TRANS,
            });
            assert_eq!(with_profile(&server, &profile).add(1, 2).unwrap(), 3, "{scheme}");
        }
        // The reference as read by an ORB that knows only omniORB's component.
        let mut profile = without_iiop(&server);
        profile.components.retain(|component| component.tag != TAG_LOCAL_ADDRESS);
        assert_eq!(with_profile(&server, &profile).add(1, 2).unwrap(), 3);
    }

    #[test]
    fn a_server_can_listen_without_iiop() {
        let server = Server::with(Orb::builder().listen("uds://".parse().unwrap()));
        assert_eq!(profile_of(&server.object).port, 0);
        assert_eq!(server.client().add(1, 2).unwrap(), 3);
        // The server recognises its own references without IIOP, too.
        assert_eq!(Target::narrow(&server.object).unwrap().add(3, 4).unwrap(), 7);
    }

    #[test]
    fn a_same_host_address_of_another_host_or_file_is_skipped() {
        let server = Server::with(uds_and_shm());
        let other_host = with_altered_addresses(&server, |address| address.host = "another".into());
        assert_eq!(other_host.add(1, 2).unwrap(), 3, "by IIOP");
        let other_file = with_altered_addresses(&server, |address| address.file.1 ^= 1);
        assert_eq!(other_file.add(1, 2).unwrap(), 3, "by IIOP");
        // Without a usable IIOP address, the call fails.
        let mut profile = without_iiop(&server);
        for component in &mut profile.components {
            if let Some(address) = LocalAddress::decode(component).unwrap() {
                *component = LocalAddress { host: "another".into(), ..address }.encode().unwrap();
            }
        }
        let refused = with_profile(&server, &profile).add(1, 2).unwrap_err();
        assert!(refused.to_string().contains("iiop://127.0.0.1:1"), "{refused}");
    }

    #[test]
    fn a_removed_socket_file_is_skipped() {
        let server = Server::with(uds_and_shm());
        let target = server.client();
        for address in addresses(&server) {
            fs::remove_file(&address.address).unwrap();
        }
        assert_eq!(target.add(1, 2).unwrap(), 3, "the socket existed when the reference was read");
        assert_eq!(server.client().add(1, 2).unwrap(), 3);
    }

    #[test]
    fn a_socket_file_without_a_listener_is_skipped() {
        let server = Server::with(uds_and_shm());
        let [uds, shm] = addresses(&server).try_into().unwrap();
        for address in [&uds, &shm] {
            // The socket file of a killed process.
            fs::remove_file(&address.address).unwrap();
            drop(std::os::unix::net::UnixListener::bind(&address.address).unwrap());
        }
        let refreshed = with_altered_addresses(&server, |address| {
            use std::os::unix::fs::MetadataExt;
            address.file.1 = fs::metadata(&address.address).unwrap().ino();
        });
        assert_eq!(refreshed.add(1, 2).unwrap(), 3);
    }

    #[test]
    fn a_client_refused_by_shared_memory_uses_another_transport() {
        let server = Server::with(uds_and_shm());
        // As the server of another user publishes it, without access for others; the superuser always has
        // access.
        let target = with_altered_addresses(&server, |address| address.user = 12345);
        assert_eq!(target.add(1, 2).unwrap(), 3);
    }

    #[test]
    fn malformed_address_components_are_skipped() {
        let server = Server::with(uds_and_shm());
        let good = addresses(&server)[0].encode().unwrap();
        let mut components: Vec<Vec<u8>> = (0..good.data.len()).map(|length| good.data[..length].to_vec()).collect();
        for at in 0..good.data.len() {
            let mut data = good.data.clone();
            data[at] ^= 0xff;
            components.push(data);
        }
        for address in ["", "/", "relative", "@", "/proc/self/exe", &"/long".repeat(100), "/tmp/\u{1}", "@\n"] {
            let address = LocalAddress { address: address.into(), ..addresses(&server)[0].clone() };
            components.push(address.encode().unwrap().data);
        }
        let mut profile = profile_of(&server.object);
        profile
            .components
            .retain(|component| component.tag != TAG_LOCAL_ADDRESS && component.tag != TAG_OMNIORB_UNIX_TRANS);
        for tag in [TAG_LOCAL_ADDRESS, TAG_OMNIORB_UNIX_TRANS] {
            profile.components.extend(components.iter().map(|data| TaggedComponent { tag, data: data.clone() }));
        }
        assert_eq!(with_profile(&server, &profile).add(1, 2).unwrap(), 3);
    }

    #[test]
    fn socket_files_are_for_their_owner_unless_they_have_a_mode() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = PathBuf::from(format!("/tmp/spandrel-modes-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (number, (scheme, options, expected)) in [
            ("uds", "", 0o600),
            ("shm", "", 0o600),
            ("uds", "|mode=666", 0o666),
            ("shm", "|mode=660", 0o660),
            ("shm", "|any-user=yes", 0o666),
            ("shm", "|any-user=yes,mode=660", 0o660),
        ]
        .into_iter()
        .enumerate()
        {
            let path = folder.join(number.to_string());
            let endpoint: Endpoint = format!("{scheme}://{}{options}", path.display()).parse().unwrap();
            let _server = Server::with(Orb::builder().listen(endpoint));
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(format!("{:o}", mode & 0o777), format!("{expected:o}"), "{scheme}{options}");
        }
        wait_until("the removal of the files", || fs::remove_dir(&folder).is_ok());
    }

    #[test]
    fn a_socket_path_can_be_given_and_a_stale_socket_is_replaced() {
        let folder = PathBuf::from(format!("/tmp/spandrel-transports-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        // The socket file of a killed process.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let endpoint: Endpoint = format!("giop:unix:{}|mode=600", path.display()).parse().unwrap();
        let server = Server::with(Orb::builder().listen(endpoint.clone()));
        assert_eq!(server.client().add(1, 2).unwrap(), 3);
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let taken = listen(&Orb::builder().listen(endpoint).build().unwrap()).unwrap_err();
        let cause = taken.source().unwrap().to_string();
        assert!(cause.contains(path.to_str().unwrap()) && cause.contains("choose another path"), "{cause}");
        drop(server);
        // The thread that accepts removes the file when it ends.
        wait_until("the removal of the socket file with its server", || !path.exists());
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn every_concurrency_strategy_serves_every_transport() {
        use spandrel::options::Concurrency::{LeaderFollowers, Reactive, ThreadPerConnection, ThreadPool};
        let concurrencies = [
            ThreadPerConnection { limit: 64 },
            LeaderFollowers { threads: None },
            LeaderFollowers { threads: Some(1) },
            ThreadPool { threads: 2, queue: 64 },
            Reactive,
        ];
        let octets: Vec<u8> = (0..3 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
        for concurrency in concurrencies {
            for scheme in ["uds", "shm"] {
                let server = Server::with(Orb::builder().concurrency(concurrency).listen(Endpoint::of(scheme, "")));
                let target = server.client();
                // More data than a ring holds, and several concurrent calls over one connection.
                assert_eq!(target.echo_octets(&octets).unwrap(), octets, "{scheme} {concurrency:?}");
                let single = server.client_with(Orb::builder().connections_per_peer(1));
                let calls: Vec<_> = (0..20).map(|turn| (turn, single.add_async(turn, 1))).collect();
                assert_eq!(single.add(1, 2).unwrap(), 3);
                for (turn, call) in calls {
                    assert_eq!(block_on(call).unwrap(), turn + 1);
                }
                (0..50).for_each(|_| target.note(&[7]).unwrap());
                wait_until("the last note", || target.count().unwrap() >= 50);
            }
        }
    }

    /// A process of omniORB's naming service, killed when dropped.
    struct OmniNames(spandrel_test_support::ChildProcess, PathBuf);

    impl Drop for OmniNames {
        fn drop(&mut self) {
            _ = self.0.kill();
            _ = self.0.wait();
            _ = fs::remove_dir_all(&self.1);
        }
    }

    /// Runs only where omniORB is installed.
    #[test]
    fn omniorb_is_called_through_its_unix_socket() {
        let folder = PathBuf::from(format!("/tmp/spandrel-omni-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("socket");
        let mut command = std::process::Command::new("omniNames");
        command.args(["-start", "2809", "-always", "-ignoreport", "-datadir"]).arg(&folder);
        command.args(["-ORBendPoint", &format!("giop:unix:{}", socket.display())]);
        command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let Ok(process) = spandrel_test_support::ChildProcess::try_start(&mut command) else {
            eprintln!("skipped: omniNames is not installed");
            return fs::remove_dir_all(&folder).unwrap();
        };
        let _running = OmniNames(process, folder);
        wait_until("omniNames", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
        // The address as omniORB publishes it.
        let host = rustix::system::uname().nodename().to_str().unwrap().to_owned();
        let address = UnixTransport { host: host.clone(), path: socket.to_str().unwrap().to_owned() };
        let profile = IiopProfile {
            version: spandrel::cdr::GiopVersion::V1_2,
            host,
            port: 0,
            object_key: b"NameService".to_vec(),
            components: vec![address.encode().unwrap()],
        };
        let ior = Ior { type_id: String::new(), profiles: vec![profile.encode().unwrap()] };
        let names = Orb::builder().build().unwrap().reference(ior);
        let answers = || match names.is_a("IDL:omg.org/CosNaming/NamingContext:1.0") {
            // omniNames listens before it has created the context and before it accepts calls.
            Err(error)
                if matches!(error.kind(), SystemExceptionKind::ObjectNotExist | SystemExceptionKind::Transient) =>
            {
                false
            }
            answer => {
                assert!(answer.unwrap());
                true
            }
        };
        wait_until("its naming context", answers);
    }

    #[test]
    fn unknown_endpoint_options_are_refused_by_name() {
        for (endpoint, named) in [
            ("uds://|speed=9", "`speed`"),
            ("uds://|mode=9", "octal"),
            ("shm://|any-user=maybe", "yes or no"),
            ("uds://a/b", "slash"),
        ] {
            let orb = Orb::builder().listen(endpoint.parse().unwrap()).build().unwrap();
            let refused = listen(&orb).unwrap_err();
            let cause = refused.source().unwrap().to_string();
            assert!(cause.contains(named), "{endpoint}: {cause}");
        }
    }
}
