//! The contents of a reference as text: type, addresses, keys and components.
//!
//! Undecodable parts are shown as octets with the reason, so that malformed references can be inspected too.

use std::fmt::Write as _;

use spandrel::net::error::escape;
use spandrel_cdr::{ByteOrder, Decode, Decoder, GiopVersion, Ior, TaggedComponent, TaggedProfile, Wire};
use spandrel_giop::component::{CodeSets, Component, code_set_name, orb_type_name, tag_name};
use spandrel_giop::datagram::DatagramAddress;
use spandrel_giop::ids::TAG_OPERATION_INDEX;
use spandrel_giop::local_address::{LocalAddress, UnixTransport};
use spandrel_giop::{
    Address, Corbaloc, IiopProfile, ObjectUrl, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS, ior_to_string,
};

use super::security::{Security, security_of};

/// Octets in one line of a hexadecimal dump.
const DUMP_WIDTH: usize = 16;

/// Describes a reference given as `IOR:` or `corbaloc:`.
#[must_use]
pub fn describe(url: &ObjectUrl) -> String {
    let mut text = String::new();
    match url {
        ObjectUrl::Ior(ior) => describe_ior(&mut text, ior),
        ObjectUrl::Corbaloc(corbaloc) => describe_corbaloc(&mut text, corbaloc),
    }
    text
}

fn describe_ior(text: &mut String, ior: &Ior) {
    if ior.is_nil() {
        text.push_str("nil: a reference to no object\n");
        return;
    }
    let type_id = if ior.type_id.is_empty() { "(none)".to_owned() } else { escape(&ior.type_id).to_string() };
    _ = writeln!(text, "type id       {type_id}");
    if ior.profiles.is_empty() {
        text.push_str("no profiles: nothing says where the object is\n");
    }
    for (index, profile) in ior.profiles.iter().enumerate() {
        _ = write!(text, "profile {index}     ");
        describe_profile(text, profile);
    }
}

fn describe_corbaloc(text: &mut String, corbaloc: &Corbaloc) {
    for (index, address) in corbaloc.addresses.iter().enumerate() {
        _ = write!(text, "address {index}     ");
        _ = match address {
            Address::Iiop { version, host, port } => {
                writeln!(text, "IIOP {version}, host {}, port {port}", escape(host))
            }
            Address::Ssliop { version, host, port } => {
                writeln!(text, "TLS, GIOP {version}, host {}, port {port}", escape(host))
            }
            Address::Rir => writeln!(text, "an initial reference of the ORB that reads it"),
            Address::Other(other) => writeln!(text, "{} (not a protocol that is known here)", escape(other)),
        };
    }
    describe_key(text, &corbaloc.key);
    if let Ok(ior) = corbaloc.to_ior() {
        _ = writeln!(text, "as IOR        {}", ior_to_string(&ior));
    }
}

fn describe_profile(text: &mut String, profile: &TaggedProfile) {
    match (profile.tag, IiopProfile::decode(profile)) {
        (_, Ok(Some(iiop))) => describe_iiop(text, &iiop),
        (TAG_INTERNET_IOP, Ok(None)) => {
            _ = writeln!(text, "TAG_INTERNET_IOP (0), of another major version than 1");
            dump(text, "  ", &profile.data);
        }
        (TAG_INTERNET_IOP, Err(error)) => {
            _ = writeln!(text, "TAG_INTERNET_IOP (0), unreadable: {}", chain(&error));
            dump(text, "  ", &profile.data);
        }
        (TAG_MULTIPLE_COMPONENTS, _) => describe_component_profile(text, profile),
        (tag, _) => {
            _ = writeln!(text, "tag {tag} ({tag:#x}), not known here, {}", octets(profile.data.len()));
            dump(text, "  ", &profile.data);
        }
    }
}

fn describe_iiop(text: &mut String, profile: &IiopProfile) {
    _ = writeln!(text, "IIOP {}", profile.version);
    _ = writeln!(text, "  host        {}", escape(&profile.host));
    _ = writeln!(text, "  port        {}", profile.port);
    match security_of(profile) {
        Security::Plain => {}
        Security::TlsOrPlain => text.push_str("  security    offers TLS, and IIOP without it\n"),
        Security::TlsOnly => text.push_str("  security    offers TLS only\n"),
    }
    describe_key(text, &profile.object_key);
    // Port 0: the object has no plain address, which is the only one that a `corbaloc:` names.
    if profile.port != 0 {
        let address = Address::Iiop { version: profile.version, host: profile.host.clone(), port: profile.port };
        _ = writeln!(text, "  corbaloc    {}", Corbaloc { addresses: vec![address], key: profile.object_key.clone() });
    }
    profile.components.iter().for_each(|component| describe_component(text, component));
}

/// A profile that consists only of components (CORBA 3.3 Part 2, 7.6.5.1).
fn describe_component_profile(text: &mut String, profile: &TaggedProfile) {
    let wire = Wire::new(ByteOrder::Big, GiopVersion::V1_0);
    let components =
        Decoder::of_encapsulation(&profile.data, wire).and_then(|mut input| Vec::<TaggedComponent>::decode(&mut input));
    match components {
        Ok(components) => {
            _ = writeln!(text, "TAG_MULTIPLE_COMPONENTS (1)");
            components.iter().for_each(|component| describe_component(text, component));
        }
        Err(error) => {
            _ = writeln!(text, "TAG_MULTIPLE_COMPONENTS (1), unreadable: {error}");
            dump(text, "  ", &profile.data);
        }
    }
}

fn describe_key(text: &mut String, key: &[u8]) {
    _ = writeln!(text, "  object key  \"{}\", {}", key.escape_ascii(), octets(key.len()));
    dump(text, "    ", key);
}

fn describe_component(text: &mut String, component: &TaggedComponent) {
    let TaggedComponent { tag, data } = component;
    let name = tag_name(*tag).map_or_else(|| format!("tag {tag} ({tag:#x})"), |name| format!("{name} ({tag})"));
    if let Some(line) = describe_address(component) {
        _ = writeln!(text, "  component   {name}: {line}");
        return;
    }
    match Component::decode(component) {
        Ok(Some(Component::OrbType(orb))) => {
            let known = orb_type_name(orb).unwrap_or("not known here");
            _ = writeln!(text, "  component   {name}: {known} ({orb:#010x})");
        }
        Ok(Some(Component::CodeSets { char_data, wchar_data })) => {
            _ = writeln!(text, "  component   {name}");
            _ = writeln!(text, "    char      {}", code_sets(&char_data));
            _ = writeln!(text, "    wchar     {}", code_sets(&wchar_data));
        }
        Ok(Some(Component::AlternateIiopAddress { host, port })) => {
            _ = writeln!(text, "  component   {name}: host {}, port {port}", escape(&host));
        }
        Ok(Some(Component::SslSecTrans(tls))) => {
            _ = writeln!(text, "  component   {name}: {tls}");
            _ = writeln!(text, "    supports  {}", association_options(tls.supports));
            _ = writeln!(text, "    requires  {}", association_options(tls.requires));
        }
        Ok(Some(Component::Policies(policies))) => {
            _ = writeln!(text, "  component   {name}");
            for policy in policies {
                _ = writeln!(text, "    type {}, {}", policy.policy_type, octets(policy.data.len()));
                dump(text, "      ", &policy.data);
            }
        }
        Ok(Some(Component::CompleteObjectKey(key))) => {
            _ = writeln!(text, "  component   {name}");
            describe_key(text, &key);
        }
        Ok(_) => {
            _ = writeln!(text, "  component   {name}, {}", octets(data.len()));
            dump(text, "    ", data);
        }
        Err(error) => {
            _ = writeln!(text, "  component   {name}, unreadable: {}", chain(&error));
            dump(text, "    ", data);
        }
    }
}

/// The address in a component of another transport than IIOP, or what a component of ours offers.
fn describe_address(component: &TaggedComponent) -> Option<String> {
    if let Ok(Some(local)) = LocalAddress::decode(component) {
        let LocalAddress { scheme, address, host, user, any_user, .. } = local;
        let users = if any_user { "any user".to_owned() } else { format!("user {user}") };
        return Some(format!("{scheme}://{}, on the host of boot id {}, for {users}", escape(&address), escape(&host)));
    }
    if let Ok(Some(UnixTransport { host, path })) = UnixTransport::decode(component) {
        return Some(format!("uds://{}, on host {}", escape(&path), escape(&host)));
    }
    if let Some(DatagramAddress { host, port, max_octets }) = DatagramAddress::decode(component) {
        return Some(format!("UDP, host {}, port {port}, up to {max_octets} octets", escape(&host)));
    }
    (component.tag == TAG_OPERATION_INDEX).then(|| "operations may be given by their index".to_owned())
}

/// The names of `Security::AssociationOptions` (CORBA Security Service 1.8).
fn association_options(options: u16) -> String {
    const NAMES: [&str; 8] = [
        "NoProtection",
        "Integrity",
        "Confidentiality",
        "DetectReplay",
        "DetectMisordering",
        "EstablishTrustInTarget",
        "EstablishTrustInClient",
        "NoDelegation",
    ];
    let named = NAMES.iter().enumerate().filter(|(place, _)| options >> place & 1 != 0).map(|(_, name)| *name);
    let names: Vec<&str> = named.collect();
    if names.is_empty() { format!("nothing ({options:#x})") } else { format!("{} ({options:#x})", names.join(", ")) }
}

fn code_sets(sets: &CodeSets) -> String {
    let name = |set: u32| match (set, code_set_name(set)) {
        (0, _) => "none".to_owned(),
        (_, Some(name)) => format!("{name} ({set:#010x})"),
        (_, None) => format!("{set:#010x}"),
    };
    let mut text = format!("native {}", name(sets.native));
    for (index, set) in sets.conversion.iter().enumerate() {
        _ = write!(text, "{}{}", if index == 0 { ", converts " } else { " or " }, name(*set));
    }
    text
}

fn octets(count: usize) -> String {
    if count == 1 { "1 octet".to_owned() } else { format!("{count} octets") }
}

/// Lines of octets in hexadecimal and ASCII.
fn dump(text: &mut String, indent: &str, data: &[u8]) {
    for line in data.chunks(DUMP_WIDTH) {
        let hex: String = line.iter().map(|octet| format!("{octet:02x} ")).collect();
        let ascii =
            line.iter().map(|octet| if octet.is_ascii_graphic() || *octet == b' ' { char::from(*octet) } else { '.' });
        _ = writeln!(text, "{indent}{hex:<width$} {}", ascii.collect::<String>(), width = DUMP_WIDTH * 3);
    }
}

pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(text: &str) -> String {
        describe(&text.parse().unwrap())
    }

    fn iiop() -> IiopProfile {
        let code_sets = Component::CodeSets {
            char_data: CodeSets { native: 0x0001_0001, conversion: vec![0x0501_0001] },
            wchar_data: CodeSets { native: 0x0001_0109, conversion: vec![0x1234] },
        };
        IiopProfile {
            version: GiopVersion::V1_2,
            host: "server.example".to_owned(),
            port: 2809,
            object_key: b"Bank/\xff\x00account".to_vec(),
            components: vec![
                Component::OrbType(0x4154_5400).encode().unwrap(),
                code_sets.encode().unwrap(),
                Component::AlternateIiopAddress { host: "::1".to_owned(), port: 7 }.encode().unwrap(),
                TaggedComponent { tag: 0x5350_0000, data: b"whatever this may be".to_vec() },
                TaggedComponent { tag: 1, data: vec![1, 2, 3] },
            ],
        }
    }

    #[test]
    fn all_fields_of_a_reference_are_printed() {
        let ior = Ior { type_id: "IDL:Bank/Account:1.0".to_owned(), profiles: vec![iiop().encode().unwrap()] };
        insta::assert_snapshot!(described(&ior_to_string(&ior)));
    }

    #[test]
    fn unreadable_profiles_are_shown_as_octets() {
        let tagged = |tag, data: &[u8]| TaggedProfile { tag, data: data.to_vec() };
        let components = [&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 99, 0, 0, 0, 2][..], b"ab"].concat();
        let profiles = vec![
            tagged(0, &[1, 1]),
            tagged(0, &[0, 2, 0, 0]),
            tagged(7, b"0123456789abcdefXYZ"),
            tagged(1, &components),
            tagged(1, b""),
        ];
        insta::assert_snapshot!(described(&ior_to_string(&Ior { type_id: String::new(), profiles })));
    }

    #[test]
    fn a_nil_reference_is_described_as_nil() {
        assert_eq!(described("IOR:00000000000000010000000000000000"), "nil: a reference to no object\n");
    }

    #[test]
    fn a_corbaloc_lists_its_addresses_and_key() {
        let text = described("corbaloc:iiop:1.2@[::1]:5000,:other.example,ssl:x:1/Name%20Service");
        let (description, ior) = text.rsplit_once("as IOR        ").unwrap(); // in the byte order of this machine
        insta::assert_snapshot!(description);
        assert!(described(ior).contains("Name Service"));
        assert!(described("corbaloc:rir:/NameService").contains("initial reference"));
    }
}
