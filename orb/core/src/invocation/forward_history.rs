//! The forwardings of one call, to detect and describe loops.

use std::hash::{DefaultHasher, Hash, Hasher};

use spandrel_cdr::Ior;
use spandrel_giop::{CompletionStatus, IiopProfile, SystemException, ids};

/// The maximum number of forwardings of a call, beyond which they count as a loop.
const MAX_FORWARDS: usize = 16;

/// The maximum number of visits of one target: a moved object may move back once.
const MAX_VISITS: usize = 2;

/// The maximum number of NEEDS_ADDRESSING_MODE replies: there are three dispositions.
const MAX_READDRESSINGS: u32 = 3;

/// The maximum number of characters of a host, or octets of an object key, in an error text.
const MAX_PRINTED: usize = 40;

/// The forwardings of one call. Most calls are never forwarded, and store nothing.
#[derive(Debug, Default)]
pub(crate) struct ForwardHistory(Option<Box<ForwardSteps>>);

#[derive(Debug, Default)]
struct ForwardSteps {
    /// The first entry is the original reference. References are not stored: a server decides on their
    /// length.
    visited: Vec<VisitedProfile>,
    readdressings: u32,
}

/// A reference that the call was sent to.
#[derive(Debug)]
struct VisitedProfile {
    /// The hash of the reference's profiles.
    digest: u64,
    /// The description for error texts; empty if exceptions do not keep them.
    description: String,
}

impl VisitedProfile {
    fn of(ior: &Ior) -> Self {
        let mut hasher = DefaultHasher::new();
        ior.profiles.hash(&mut hasher);
        let description = if SystemException::KEEPS_DETAIL { describe_target(ior) } else { String::new() };
        Self { digest: hasher.finish(), description }
    }
}

impl ForwardHistory {
    /// Records a forwarding; `from` is the original reference.
    ///
    /// # Errors
    /// TRANSIENT for a forwarding loop, or too many forwardings.
    pub(crate) fn record_forward<'i>(
        &mut self,
        from: impl FnOnce() -> &'i Ior,
        to: &Ior,
    ) -> Result<(), SystemException> {
        let visited = &mut self.0.get_or_insert_default().visited;
        if visited.is_empty() {
            visited.push(VisitedProfile::of(from()));
        }
        let to = VisitedProfile::of(to);
        let visits = visited.iter().filter(|known| known.digest == to.digest).count();
        visited.push(to);
        let is_circle = visits >= MAX_VISITS;
        if !is_circle && visited.len() <= MAX_FORWARDS + 1 {
            return Ok(());
        }
        let exception = SystemException::transient(ids::TRANSIENT_FORWARD_LOOP, CompletionStatus::No);
        Err(exception.with_detail(|| {
            let route: Vec<&str> = visited.iter().map(|profile| &*profile.description).collect();
            let reason = match is_circle {
                true => "forwarding loop".to_owned(),
                false => format!("forwarded {MAX_FORWARDS} times in a row"),
            };
            format!("{reason}: {}", route.join(" → "))
        }))
    }

    /// Records a NEEDS_ADDRESSING_MODE reply; false if there were too many.
    pub(super) fn readdress(&mut self) -> bool {
        let readdressings = &mut self.0.get_or_insert_default().readdressings;
        *readdressings += 1;
        *readdressings <= MAX_READDRESSINGS
    }
}

/// The address and the object key of a reference, for error texts.
fn describe_target(ior: &Ior) -> String {
    let profile = ior.profiles.iter().find_map(|profile| IiopProfile::decode(profile).ok().flatten());
    let Some(IiopProfile { host, port, object_key, .. }) = profile else {
        return "a reference without an IIOP profile".to_owned();
    };
    let mut host: String = host.chars().take(MAX_PRINTED).collect();
    if host.contains(':') {
        host = format!("[{host}]");
    }
    let (key, rest) = object_key.split_at(object_key.len().min(MAX_PRINTED));
    format!("{host}:{port}/{}{}", key.escape_ascii(), if rest.is_empty() { "" } else { "…" })
}

#[cfg(all(test, feature = "details"))]
mod tests {
    use spandrel_cdr::GiopVersion;

    use super::*;

    fn at(port: u16) -> Ior {
        let profile = IiopProfile {
            version: GiopVersion::V1_2,
            host: "host".into(),
            port,
            object_key: vec![b'k'; if port == 9 { 50 } else { 2 }],
            components: Vec::new(),
        };
        Ior { type_id: String::new(), profiles: vec![profile.encode().unwrap()] }
    }

    fn follow(ports: impl IntoIterator<Item = u16>) -> Result<(), SystemException> {
        let (mut history, home) = (ForwardHistory::default(), at(1));
        ports.into_iter().try_for_each(|port| history.record_forward(|| &home, &at(port)))
    }

    #[test]
    fn one_forwarding_back_is_not_a_loop() {
        assert!(follow([2, 3, 4, 2, 3, 4]).is_ok());
        assert!(follow([1, 2]).is_ok(), "a call that is forwarded to its original reference may be forwarded again");
    }

    #[test]
    fn a_forwarding_loop_is_described_step_by_step() {
        let error = follow([2, 1, 2, 1]).unwrap_err();
        assert_eq!(error.minor(), ids::TRANSIENT_FORWARD_LOOP);
        let detail = error.detail().unwrap_or_default();
        let chain = "host:1/kk → host:2/kk → host:1/kk → host:2/kk → host:1/kk";
        assert_eq!(detail, format!("forwarding loop: {chain}"));
    }

    #[test]
    fn the_number_of_forwardings_is_limited() {
        let error = follow(2..100).unwrap_err();
        let detail = error.detail().unwrap_or_default();
        assert!(detail.starts_with("forwarded 16 times in a row: host:1/kk → host:2/kk"), "{detail}");
        assert!(
            detail.contains(&format!("host:9/{}… →", "k".repeat(40))) && detail.ends_with("host:18/kk"),
            "{detail}"
        );
    }
}
