//! Where one call has been sent to: circles are found and told.

use std::hash::{DefaultHasher, Hash, Hasher};

use spandrel_cdr::Ior;
use spandrel_giop::{CompletionStatus, IiopProfile, SystemException, ids};

/// Forwardings in a row before a call gives up: as good as a circle.
const MAX_FORWARDS: usize = 16;

/// How often a call may be sent to one place: once more than the first time, since what has moved may come back.
const MAX_VISITS: usize = 2;

/// How often a server may ask for another addressing disposition: there are no more than three.
const MAX_READDRESSINGS: u32 = 3;

/// Characters of a host, or octets of an object key, that are said to people.
const MAX_PRINTED: usize = 40;

/// Where one call has been sent to so far. Most are never forwarded, and have none.
#[derive(Debug, Default)]
pub(crate) struct ForwardHistory(Option<Box<ForwardSteps>>);

#[derive(Debug, Default)]
struct ForwardSteps {
    /// First where it began. Not the references themselves, which a server may make as long as it likes.
    visited: Vec<VisitedProfile>,
    readdressings: u32,
}

/// A place on the way.
#[derive(Debug)]
struct VisitedProfile {
    /// Of the reference's profiles.
    digest: u64,
    /// For people.
    description: String,
}

impl VisitedProfile {
    fn of(ior: &Ior) -> Self {
        let mut hasher = DefaultHasher::new();
        ior.profiles.hash(&mut hasher);
        Self { digest: hasher.finish(), description: describe_target(ior) }
    }
}

impl ForwardHistory {
    /// One more forwarding; `from` is where the first one came from.
    ///
    /// # Errors
    /// TRANSIENT if it leads in a circle, or there were too many.
    pub(crate) fn record_forward<'i>(&mut self, from: impl FnOnce() -> &'i Ior, to: &Ior) -> Result<(), SystemException> {
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
        Err(exception.with_detail({
            let route: Vec<&str> = visited.iter().map(|profile| &*profile.description).collect();
            let reason = match is_circle {
                true => "the object is forwarded in a circle".to_owned(),
                false => format!("forwarded {MAX_FORWARDS} times in a row without arriving"),
            };
            format!("{reason}: {}", route.join(" → "))
        }))
    }

    /// Once more asked for another addressing disposition; false if that was too often.
    pub(super) fn readdress(&mut self) -> bool {
        let readdressings = &mut self.0.get_or_insert_default().readdressings;
        *readdressings += 1;
        *readdressings <= MAX_READDRESSINGS
    }
}

/// Where a reference leads, for people.
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

#[cfg(test)]
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
    fn one_forward_back_is_no_loop() {
        assert!(follow([2, 3, 4, 2, 3, 4]).is_ok());
        assert!(follow([1, 2]).is_ok(), "who is forwarded to where it began may be sent on from there");
    }

    #[test]
    fn a_forwarding_loop_is_described_step_by_step() {
        let error = follow([2, 1, 2, 1]).unwrap_err();
        assert_eq!(error.minor(), ids::TRANSIENT_FORWARD_LOOP);
        let detail = error.detail().unwrap_or_default();
        let chain = "host:1/kk → host:2/kk → host:1/kk → host:2/kk → host:1/kk";
        assert_eq!(detail, format!("the object is forwarded in a circle: {chain}"));
    }

    #[test]
    fn endless_forwarding_is_given_up() {
        let error = follow(2..100).unwrap_err();
        let detail = error.detail().unwrap_or_default();
        assert!(detail.starts_with("forwarded 16 times in a row without arriving: host:1/kk → host:2/kk"), "{detail}");
        assert!(
            detail.contains(&format!("host:9/{}… →", "k".repeat(40))) && detail.ends_with("host:18/kk"),
            "{detail}"
        );
    }
}
