//! The contents of a reference as JSON.

use serde_json::{Value, json};
use spandrel_cdr::{ByteOrder, Decode, Decoder, GiopVersion, Ior, TaggedComponent, TaggedProfile, Wire};
use spandrel_giop::component::{CodeSets, Component, code_set_name, orb_type_name, tag_name};
use spandrel_giop::datagram::DatagramAddress;
use spandrel_giop::local_address::{LocalAddress, UnixTransport};
use spandrel_giop::{Address, IiopProfile, ObjectUrl, TAG_INTERNET_IOP, TAG_MULTIPLE_COMPONENTS, ior_to_string};

use super::security::{Security, security, security_of};

/// The contents of a reference as one JSON object.
#[must_use]
pub fn describe(url: &ObjectUrl) -> Value {
    match url {
        ObjectUrl::Ior(ior) => json!({
            "type_id": ior.type_id,
            "nil": ior.is_nil(),
            "security": security_name(security(ior)),
            "profiles": ior.profiles.iter().map(profile).collect::<Vec<_>>(),
        }),
        ObjectUrl::Corbaloc(corbaloc) => {
            let addresses = corbaloc.addresses.iter().map(|address| match address {
                Address::Iiop { version, host, port } => {
                    json!({ "protocol": "iiop", "version": version.to_string(), "host": host, "port": port })
                }
                Address::Ssliop { version, host, port } => {
                    json!({ "protocol": "ssliop", "version": version.to_string(), "host": host, "port": port })
                }
                Address::Rir => json!({ "protocol": "rir" }),
                Address::Other(other) => json!({ "protocol": "other", "address": other.to_string() }),
            });
            json!({
                "addresses": addresses.collect::<Vec<_>>(),
                "object_key": octets(&corbaloc.key),
                "ior": corbaloc.to_ior().ok().map(|ior: Ior| ior_to_string(&ior)),
            })
        }
    }
}

fn security_name(security: Security) -> &'static str {
    match security {
        Security::Plain => "none",
        Security::TlsOrPlain => "tls or none",
        Security::TlsOnly => "tls only",
    }
}

fn profile(profile: &TaggedProfile) -> Value {
    let undecodable = |error: String| json!({ "tag": profile.tag, "error": error, "octets": octets(&profile.data) });
    match (profile.tag, IiopProfile::decode(profile)) {
        (_, Ok(Some(iiop))) => json!({
            "tag": profile.tag,
            "version": iiop.version.to_string(),
            "host": iiop.host,
            "port": iiop.port,
            "object_key": octets(&iiop.object_key),
            "security": security_name(security_of(&iiop)),
            "components": iiop.components.iter().map(component).collect::<Vec<_>>(),
        }),
        (TAG_INTERNET_IOP, Err(error)) => undecodable(error.to_string()),
        (TAG_MULTIPLE_COMPONENTS, _) => {
            let wire = Wire::new(ByteOrder::Big, GiopVersion::V1_0);
            let opened = Decoder::of_encapsulation(&profile.data, wire);
            match opened.and_then(|mut input| Vec::<TaggedComponent>::decode(&mut input)) {
                Ok(components) => json!({
                    "tag": profile.tag,
                    "components": components.iter().map(component).collect::<Vec<_>>(),
                }),
                Err(error) => undecodable(error.to_string()),
            }
        }
        _ => json!({ "tag": profile.tag, "octets": octets(&profile.data) }),
    }
}

fn component(component: &TaggedComponent) -> Value {
    let mut object = json!({ "tag": component.tag, "octets": octets(&component.data) });
    if let Some(name) = tag_name(component.tag) {
        object["name"] = name.into();
    }
    match content(component) {
        Ok(Some(content)) => object["content"] = content,
        Ok(None) => {}
        Err(error) => object["error"] = error.into(),
    }
    object
}

fn content(component: &TaggedComponent) -> Result<Option<Value>, String> {
    let failed = |error: spandrel_giop::GiopError| super::dump::chain(&error);
    if let Some(local) = LocalAddress::decode(component).map_err(failed)? {
        return Ok(Some(json!({
            "transport": local.scheme,
            "address": local.address,
            "host_boot_id": local.host,
            "user": local.user,
            "any_user": local.any_user,
        })));
    }
    if let Some(unix) = UnixTransport::decode(component).map_err(failed)? {
        return Ok(Some(json!({ "transport": "uds", "address": unix.path, "host": unix.host })));
    }
    if let Some(datagram) = DatagramAddress::decode(component) {
        return Ok(Some(json!({ "host": datagram.host, "port": datagram.port, "max_octets": datagram.max_octets })));
    }
    Ok(Component::decode(component).map_err(failed)?.map(|component| match component {
        Component::OrbType(orb) => json!({ "orb_type": orb, "name": orb_type_name(orb) }),
        Component::CodeSets { char_data, wchar_data } => {
            json!({ "char": code_sets(&char_data), "wchar": code_sets(&wchar_data) })
        }
        Component::AlternateIiopAddress { host, port } => json!({ "host": host, "port": port }),
        Component::SslSecTrans(tls) => {
            json!({ "supports": tls.supports, "requires": tls.requires, "port": tls.port })
        }
        Component::Policies(policies) => {
            let policies =
                policies.iter().map(|policy| json!({ "type": policy.policy_type, "value": octets(&policy.data) }));
            policies.collect::<Vec<_>>().into()
        }
        Component::CompleteObjectKey(key) => json!({ "object_key": octets(&key) }),
        other => other.to_string().into(),
    }))
}

fn code_sets(sets: &CodeSets) -> Value {
    let set = |number: u32| json!({ "number": number, "name": code_set_name(number) });
    json!({ "native": set(sets.native), "conversion": sets.conversion.iter().map(|it| set(*it)).collect::<Vec<_>>() })
}

/// Octets in hexadecimal digits.
fn octets(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
