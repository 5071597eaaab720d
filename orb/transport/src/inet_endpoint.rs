//! Endpoints with a host and a port: the ports at which they listen, and the hosts and ports that references
//! publish.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
};

use spandrel_ipc::inet;

use crate::{endpoint::Endpoint, host_name::host_name, prefix::Prefix, protocol::SocketSettings};

/// The names of the options that every endpoint with a host and a port has.
pub const INET_OPTIONS: [&str; 3] = ["portspan", "publish", "interface"];

/// The addresses of this machine to publish, from `interface`.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Networks {
    All,
    Named(String),
    Within(Prefix),
}

/// Listens at an endpoint with a host and a port, for IIOP and other protocols over TCP. Returns the acceptor
/// and the hosts and ports to publish, the preferred one first. Options are those of [`INET_OPTIONS`].
///
/// # Errors
/// The errors of the system, with the option to change; [`io::ErrorKind::InvalidInput`] for an invalid
/// address or option.
pub fn listen_inet(endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<(inet::Acceptor, Vec<(String, u16)>)> {
    let networks = networks(endpoint)?;
    let (host, port) = endpoint.host_and_port()?;
    let host = match host {
        // An endpoint with `publish` or `interface` is meant for other machines.
        "" if networks.is_none() && endpoint.option("publish").is_none() => "127.0.0.1",
        "" => "*",
        host => host,
    };
    let acceptor = open(endpoint, host, port, settings)?;
    let bound = acceptor.local_addr()?;
    let natural = match &networks {
        Some(networks) => chosen(endpoint, networks, bound.ip())?,
        None => natural(host, bound.ip())?,
    };
    let natural: Vec<_> = natural.into_iter().map(|host| (host, bound.port())).collect();
    let published = match endpoint.option("publish") {
        Some(rules) => publish(endpoint, rules, &natural, bound.port())?,
        None => natural,
    };
    Ok((acceptor, published))
}

/// Opens the first free port.
fn open(endpoint: &Endpoint, host: &str, first: u16, settings: &SocketSettings) -> io::Result<inet::Acceptor> {
    let span: u16 = match endpoint.option("portspan") {
        None => 1,
        Some(span) => match span.parse() {
            Ok(span @ 1..) if first != 0 => span,
            Ok(1..) => return Err(endpoint.invalid("`portspan` needs a first port")),
            _ => return Err(endpoint.invalid("`portspan` must be a number of ports")),
        },
    };
    let last = first.checked_add(span - 1).ok_or_else(|| endpoint.invalid("`portspan` goes beyond port 65535"))?;
    let mut refused = None;
    for port in first..=last {
        match open_at(host, port, settings) {
            Ok(acceptor) => return Ok(acceptor),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => refused = Some(error),
            Err(error) => return Err(cannot_listen(endpoint, &format!("{host}:{port}"), &error)),
        }
    }
    let error = refused.unwrap_or_else(|| io::ErrorKind::AddrInUse.into());
    let where_to = if span == 1 { format!("{host}:{first}") } else { format!("any port of {host}:{first}-{last}") };
    Err(cannot_listen(endpoint, &where_to, &error))
}

fn open_at(host: &str, port: u16, settings: &SocketSettings) -> io::Result<inet::Acceptor> {
    let open = |host: &str| {
        let addr = inet::Addr::new(host, port)?;
        // `[::]` means all addresses, so it accepts IPv4 too.
        let mut options =
            inet::AcceptorOptions::default().dual_stack(addr.is_any() && matches!(addr.ip(), IpAddr::V6(_)));
        if let Some(octets) = settings.send_queue {
            options = options.send_queue(octets);
        }
        if let Some(octets) = settings.recv_queue {
            options = options.recv_queue(octets);
        }
        inet::Acceptor::open_with(&addr, &options)
    };
    if host != "*" {
        return open(host);
    }
    match open("::") {
        // IPv6 is not available on this system.
        Err(error) if !matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) => {
            open("0.0.0.0")
        }
        opened => opened,
    }
}

/// The system's error, with advice.
fn cannot_listen(endpoint: &Endpoint, at: &str, error: &io::Error) -> io::Error {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there: choose another port, or several by `portspan=N`",
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address: listen at `*`, and name the address for others by `publish=HOST:PORT`"
        }
        io::ErrorKind::PermissionDenied => "ports below 1024 are usually reserved for the superuser: choose another",
        _ => "change -ORBListenEndpoints",
    };
    io::Error::new(error.kind(), format!("cannot listen at {at} for {endpoint}: {error} ({advice})"))
}

/// The hosts to publish without `publish` and `interface`.
fn natural(host: &str, bound: IpAddr) -> io::Result<Vec<String>> {
    if !bound.is_unspecified() {
        // A name is published unchanged; the zone of an address has no meaning on other machines.
        return Ok(vec![if host.parse::<IpAddr>().is_ok() || host.contains('%') {
            bound.to_string()
        } else {
            host.into()
        }]);
    }
    let all = reachable()?;
    let best = |is_v6: bool| {
        let routed = outgoing(is_v6).filter(is_publishable);
        routed.or_else(|| all.iter().map(|(_, ip)| *ip).find(|ip| ip.is_ipv6() == is_v6))
    };
    let (v4, v6) = (best(false), best(true).filter(|_| bound.is_ipv6()));
    // With `[::]`, IPv6 comes first.
    let best = if host == "*" { [v4, v6] } else { [v6, v4] };
    let hosts: Vec<String> = best.into_iter().flatten().map(|ip| ip.to_string()).collect();
    Ok(if hosts.is_empty() { vec!["127.0.0.1".to_owned()] } else { hosts })
}

/// The hosts to publish according to `interface`.
fn chosen(endpoint: &Endpoint, networks: &Networks, bound: IpAddr) -> io::Result<Vec<String>> {
    let fits = |name: &str, ip: IpAddr| match networks {
        Networks::All => true,
        Networks::Named(interface) => name == interface,
        Networks::Within(prefix) => prefix.contains(ip),
    };
    let is_bound = |ip: &IpAddr| if bound.is_unspecified() { bound.is_ipv6() || ip.is_ipv4() } else { *ip == bound };
    // Loopback is published if named.
    let all = if_addrs::get_if_addrs()?;
    let all = all.into_iter().map(|interface| (interface.name.clone(), interface.ip()));
    let all: Vec<_> =
        all.filter(|(_, ip)| is_zone_free(ip) && (*networks != Networks::All || !ip.is_loopback())).collect();
    let addresses = all.iter().filter(|(name, ip)| fits(name, *ip) && is_bound(ip));
    let hosts: Vec<String> = addresses.map(|(_, ip)| ip.to_string()).collect();
    if hosts.is_empty() {
        let all: Vec<String> = all.iter().map(|(name, ip)| format!("{name} {ip}")).collect();
        return Err(
            endpoint.invalid(format_args!("`interface` matches none of the addresses listened at: {}", all.join(", ")))
        );
    }
    Ok(hosts)
}

fn networks(endpoint: &Endpoint) -> io::Result<Option<Networks>> {
    Ok(match endpoint.option("interface") {
        None => None,
        Some("") => return Err(endpoint.invalid("`interface` must be the name of one, an address prefix, or `all`")),
        Some("all") => Some(Networks::All),
        Some(text) => Some(match text.parse() {
            Ok(prefix) => Networks::Within(prefix),
            Err(reason) if text.contains('/') => return Err(endpoint.invalid(format_args!("`{text}`: {reason}"))),
            Err(_) => Networks::Named(text.to_owned()),
        }),
    })
}

/// The hosts and ports of `publish`, separated by commas: `host:port`; `host` with the port of the endpoint;
/// `addr` for the default hosts; `hostname` for this machine's name.
fn publish(endpoint: &Endpoint, rules: &str, natural: &[(String, u16)], port: u16) -> io::Result<Vec<(String, u16)>> {
    let mut published: Vec<(String, u16)> = Vec::new();
    for rule in rules.split(',').filter(|rule| !rule.is_empty()) {
        // OmniORB's spelling.
        let rule = rule.strip_prefix("giop:tcp:").unwrap_or(rule);
        let added = match rule {
            "addr" => natural.to_vec(),
            "hostname" => vec![(host_name(), port)],
            rule => {
                let at = Endpoint::of(endpoint.scheme(), rule);
                let (host, said) = at
                    .host_and_port()
                    .map_err(|_| endpoint.invalid(format_args!("`{rule}` in `publish` is not host:port")))?;
                let said = if said == 0 { port } else { said };
                // Without a host, the default hosts with another port.
                if host.is_empty() {
                    natural.iter().map(|(host, _)| (host.clone(), said)).collect()
                } else {
                    vec![(host.split('%').next().unwrap_or(host).to_owned(), said)]
                }
            }
        };
        published.extend(added.into_iter().filter(|new| !published.contains(new)).collect::<Vec<_>>());
    }
    if published.is_empty() { Err(endpoint.invalid("`publish` is empty")) } else { Ok(published) }
}

/// Link-local addresses have no meaning without the name of a link.
fn is_zone_free(ip: &IpAddr) -> bool {
    !matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

fn is_publishable(ip: &IpAddr) -> bool {
    is_zone_free(ip) && !ip.is_loopback() && !ip.is_unspecified()
}

/// The addresses by which other machines may reach this one, with the names of their interfaces.
fn reachable() -> io::Result<Vec<(String, IpAddr)>> {
    let all = if_addrs::get_if_addrs()?.into_iter().map(|interface| (interface.name.clone(), interface.ip()));
    Ok(all.filter(|(_, ip)| is_publishable(ip)).collect())
}

/// The source address of traffic from this machine to others, in preference to that of a bridge to local
/// containers. Nothing is sent.
fn outgoing(is_v6: bool) -> Option<IpAddr> {
    // Addresses for documentation, routed by the default route if there is one.
    let (from, to) = if is_v6 { ("[::]:0", "[2001:db8::1]:9") } else { ("0.0.0.0:0", "192.0.2.255:9") };
    let socket = UdpSocket::bind(from.parse::<SocketAddr>().ok()?).ok()?;
    socket.connect(to).ok()?;
    socket.local_addr().ok().map(|addr| addr.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(rules: &str) -> io::Result<Vec<(String, u16)>> {
        publish(&Endpoint::new("", 0), rules, &[("10.0.0.1".into(), 77), ("2001:db8::2".into(), 77)], 77)
    }

    fn pairs(expected: &[(&str, u16)]) -> Vec<(String, u16)> {
        expected.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect()
    }

    #[test]
    fn hosts_are_published_in_the_order_of_the_option() {
        for (rules, expected) in [
            ("nat.example:9999", &[("nat.example", 9999)][..]),
            ("nat.example", &[("nat.example", 77)]),
            ("a:1,[::1]:2,addr", &[("a", 1), ("::1", 2), ("10.0.0.1", 77), ("2001:db8::2", 77)]),
            (":9", &[("10.0.0.1", 9), ("2001:db8::2", 9)]),
            ("giop:tcp:a:1,a:1", &[("a", 1)]),
            ("[fe80::1%eth0]:4", &[("fe80::1", 4)]),
        ] {
            assert_eq!(published(rules).unwrap(), pairs(expected), "{rules}");
        }
        for rules in ["", ",", "a:70000", "a:b"] {
            assert!(published(rules).is_err(), "{rules}");
        }
    }

    #[test]
    fn addresses_are_published_without_zones() {
        let bound = "fe80::1".parse().unwrap();
        assert_eq!(natural("fe80::1%1", bound).unwrap(), ["fe80::1"]);
        assert_eq!(natural("host.example", "10.0.0.1".parse().unwrap()).unwrap(), ["host.example"]);
        assert!(natural("*", "::".parse().unwrap()).unwrap().iter().all(|host| !host.contains('%')));
    }

    #[test]
    fn the_first_free_port_of_a_span_is_taken() {
        let first = inet::Acceptor::open(&inet::Addr::loopback(0)).unwrap();
        let port = first.local_addr().unwrap().port();
        let endpoint = Endpoint::new("127.0.0.1", port);
        let refused = listen_inet(&endpoint, &SocketSettings::default()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        assert!(refused.to_string().contains("portspan"), "{refused}");
        let Some(last) = port.checked_add(99) else { return };
        let (second, published) = listen_inet(&endpoint.with("portspan", "100"), &SocketSettings::default())
            .expect("one of the ports is free");
        let chosen = second.local_addr().unwrap().port();
        assert!(chosen > port && chosen <= last);
        assert_eq!(published, [("127.0.0.1".to_owned(), chosen)]);
    }

    #[test]
    fn invalid_options_are_rejected() {
        for (endpoint, named) in [
            ("iiop://:0/portspan=3", "a first port"),
            ("iiop://:5000/portspan=0", "a number of ports"),
            ("iiop://:65535/portspan=2", "65535"),
            ("iiop://*:0/interface=no-such-interface", "`interface`"),
            ("iiop://*:0/interface=10.0.0.0/99", "longer"),
            ("iiop://*:0/publish=", "`publish`"),
        ] {
            let refused = listen_inet(&endpoint.parse().unwrap(), &SocketSettings::default()).unwrap_err().to_string();
            assert!(refused.contains(named), "{endpoint}: {refused}");
        }
    }
}
