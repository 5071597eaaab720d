//! Brokers and servers as processes.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use spandrel::services::cos_event_channel_admin::EventChannel;
use spandrel::{ObjectRef, Orb};
use spandrel_test_support::{
    ChildProcess, TEST_TIMEOUT, free_port, holds_within, http_exchange, http_request, wait_until,
};

/// The ports of a node: for clients, for other nodes, and for monitoring.
#[derive(Clone, Copy)]
struct NodePorts {
    client: u16,
    route: u16,
    monitor: u16,
}

/// The nodes of a JetStream broker, and the folder of their data.
pub(crate) struct Cluster {
    nodes: Vec<Option<ChildProcess>>,
    ports: Vec<NodePorts>,
    data: tempfile::TempDir,
}

impl Cluster {
    /// Starts a broker of this many nodes.
    pub(crate) fn start(size: usize) -> Self {
        let ports =
            (0..size).map(|_| NodePorts { client: free_port(), route: free_port(), monitor: free_port() }).collect();
        let nodes = (0..size).map(|_| None).collect();
        let mut cluster = Self { nodes, ports, data: tempfile::tempdir().unwrap() };
        for nth in 0..size {
            cluster.restart(nth);
        }
        cluster
    }

    /// Starts a node that is down.
    pub(crate) fn restart(&mut self, nth: usize) {
        let NodePorts { client, route, monitor } = self.ports[nth];
        let mut command = Command::new("nats-server");
        command.args(["--addr", "127.0.0.1", "--port", &client.to_string(), "--http_port", &monitor.to_string()]);
        command.args(["--jetstream", "--store_dir"]);
        command.arg(self.data.path().join(format!("n{nth}"))).args(["--name", &format!("n{nth}")]);
        if self.ports.len() > 1 {
            let routes: Vec<_> = self.ports.iter().map(|node| format!("nats://127.0.0.1:{}", node.route)).collect();
            command.args(["--cluster_name", "events", "--cluster", &format!("nats://127.0.0.1:{route}")]);
            command.args(["--routes", &routes.join(",")]);
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let node = ChildProcess::try_start(&mut command).expect("nats-server is installed (package nats-server)");
        self.nodes[nth] = Some(node);
        wait_until("a node of the broker", || TcpStream::connect(("127.0.0.1", client)).is_ok());
    }

    /// Ends a node by SIGKILL.
    pub(crate) fn kill(&mut self, nth: usize) {
        self.nodes[nth] = None;
    }

    /// Waits until each node has all events and positions: a broker of three nodes is made for the loss of one alone, and a
    /// node that has returned counts as lost until then.
    pub(crate) fn wait_for_replicas(&self) {
        let request = http_request("GET /healthz", "Host: localhost\r\n", "");
        for node in &self.ports {
            let mut last = String::new();
            let is_current = || match http_exchange(("127.0.0.1", node.monitor), &request) {
                Ok(response) => {
                    last = response.body;
                    response.status == 200
                }
                Err(_) => false,
            };
            assert!(holds_within(TEST_TIMEOUT, is_current), "a node has not caught up with the others: {last}");
        }
    }

    pub(crate) fn size(&self) -> usize {
        self.nodes.len()
    }

    fn arguments(&self) -> Vec<String> {
        let urls = self.ports.iter().map(|node| format!("nats://127.0.0.1:{}", node.client));
        let mut arguments: Vec<String> = urls.flat_map(|url| ["--nats".to_owned(), url]).collect();
        arguments.extend(["--replicas".to_owned(), self.nodes.len().to_string()]);
        arguments
    }
}

/// Event servers at fixed addresses over one broker. Their references name all of them.
pub(crate) struct Servers {
    processes: Vec<Option<ChildProcess>>,
    addresses: Vec<String>,
    arguments: Vec<String>,
    data: tempfile::TempDir,
}

impl Servers {
    pub(crate) fn start(count: usize, cluster: &Cluster, arguments: &[&str]) -> Self {
        let addresses: Vec<_> = (0..count).map(|_| format!("127.0.0.1:{}", free_port())).collect();
        let publish = format!("-ORBPublish {}", addresses.join(","));
        Self::start_at(addresses, cluster, &[arguments, &["--orb", &publish]].concat())
    }

    /// As [`start`](Self::start); but references name the server alone that hands them out.
    pub(crate) fn start_apart(count: usize, cluster: &Cluster, arguments: &[&str]) -> Self {
        Self::start_at((0..count).map(|_| format!("127.0.0.1:{}", free_port())).collect(), cluster, arguments)
    }

    fn start_at(addresses: Vec<String>, cluster: &Cluster, arguments: &[&str]) -> Self {
        let (count, mut all) = (addresses.len(), cluster.arguments());
        all.extend(arguments.iter().map(ToString::to_string));
        let processes = (0..count).map(|_| None).collect();
        let mut servers = Self { processes, addresses, arguments: all, data: tempfile::tempdir().unwrap() };
        // A cluster elects a leader before it answers.
        wait_until("the first server", || servers.try_restart(0).is_ok());
        for nth in 1..count {
            servers.restart(nth);
        }
        servers
    }

    fn try_restart(&mut self, nth: usize) -> Result<(), String> {
        let folder = self.data.path().join(nth.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-event-jetstream"));
        command.arg("--data").arg(folder).args(["--listen", &format!("iiop://{}", self.addresses[nth])]);
        command.args(&self.arguments).stdout(Stdio::piped());
        let mut process = ChildProcess::start(&mut command);
        let child: &mut Child = &mut process;
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if !line.starts_with("ready: omniEvents corbaloc:") {
            return Err(line);
        }
        self.processes[nth] = Some(process);
        Ok(())
    }

    /// Starts a server that is down.
    pub(crate) fn restart(&mut self, nth: usize) {
        wait_until("a server", || self.try_restart(nth).is_ok());
    }

    /// Ends a server by SIGKILL.
    pub(crate) fn kill(&mut self, nth: usize) {
        self.processes[nth] = None;
    }

    pub(crate) fn count(&self) -> usize {
        self.processes.len()
    }

    /// The object with this key at one server.
    pub(crate) fn object(&self, orb: &Orb, nth: usize, key: &str) -> ObjectRef {
        orb.string_to_object(&format!("corbaloc::{}/{key}", self.addresses[nth])).unwrap()
    }

    /// The channel with this name, by the reference that a server hands out.
    pub(crate) fn channel(&self, orb: &Orb, nth: usize, name: &str) -> EventChannel {
        EventChannel::unchecked_narrow(&self.object(orb, nth, name))
    }
}
