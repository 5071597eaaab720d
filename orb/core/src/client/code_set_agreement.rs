//! Code sets for text: those that an ORB prefers and offers, and the agreement with a server.
//!
//! `TransmissionCodeSets::choose` (`code_set_negotiation` of `spandrel-giop`) makes the choice; `spandrel-cdr` converts
//! text.

use spandrel_cdr::{CdrError, GiopVersion, WcharSet, Wire};
use spandrel_connection::RequestLoss;
use spandrel_giop::{
    CompletionStatus, GiopError, IiopProfile, NoCommonCodeSet, OwnCodeSets, ServiceContext, SystemException,
    TransmissionCodeSets,
    component::{CodeSetName, Component},
    ids, minor,
};

use crate::client::CallFailure;

/// The agreement with a server, from its reference.
#[derive(Clone, Debug)]
pub(crate) struct Agreement {
    chosen: Option<TransmissionCodeSets>,
    /// Whether the reference names code sets.
    is_named: bool,
    /// The context of a connection's first request, if the reference names code sets.
    context: Option<ServiceContext>,
    /// The native code sets for wide text on both sides.
    wide: (WcharSet, u32),
}

impl Agreement {
    /// Makes the agreement with the server of this profile, in this version.
    ///
    /// # Errors
    /// [`GiopError::Profile`] for a component that cannot be decoded. The inner error: there is no common
    /// code set.
    pub(crate) fn of(
        profile: &IiopProfile,
        own: &OwnCodeSets,
        version: GiopVersion,
    ) -> Result<Result<Self, NoCommonCodeSet>, GiopError> {
        let (mut named, mut is_ours) = (None, false);
        // GIOP 1.0 has no code sets.
        let components = if version < GiopVersion::V1_1 { &[] } else { &*profile.components };
        for component in components {
            if let Some(sets) = Component::read_code_sets(component)? {
                named = Some(sets);
            } else if let Some(orb) = Component::read_orb_type(component)? {
                is_ours = orb == ids::ORB_TYPE;
            }
        }
        let wide = (own.wchar_set, named.as_ref().map_or(0, |(_, wide)| wide.native));
        let choose = |(chars, wide)| TransmissionCodeSets::choose(own, &chars, &wide, is_ours, version);
        let is_named = named.is_some();
        let assumed = own.assumed.filter(|_| version >= GiopVersion::V1_1);
        let chosen = named.map_or(Ok(assumed), |named| choose(named).map(Some));
        Ok(chosen.map(|chosen| {
            let context = chosen.map(TransmissionCodeSets::to_context);
            Self { chosen, is_named, context, wide }
        }))
    }

    /// The chosen code sets: references with different ones have separate connections.
    pub(crate) fn chosen(&self) -> Option<TransmissionCodeSets> {
        self.chosen
    }

    /// Whether the reference names code sets.
    pub(crate) fn is_named(&self) -> bool {
        self.is_named
    }

    /// The encoding of requests under the agreement.
    pub(crate) fn on(&self, wire: Wire) -> Wire {
        self.chosen.unwrap_or(TransmissionCodeSets::UNNEGOTIATED).on(wire)
    }

    /// The context that is sent once on each connection.
    #[inline]
    pub(crate) fn context(&self) -> &[ServiceContext] {
        self.context.as_slice()
    }

    /// The failure of a request whose arguments cannot be encoded.
    pub(crate) fn not_encodable(&self, error: CdrError) -> CallFailure {
        let needs_code_sets = matches!(
            error,
            CdrError::NotRepresentable { .. }
                | CdrError::NotOneOctet { .. }
                | CdrError::NoWcharSet
                | CdrError::WideInGiop10
                | CdrError::WideInGiop11(_)
        );
        let loss = if needs_code_sets && !self.is_named() { RequestLoss::CodeSetsUnknown } else { RequestLoss::Other };
        CallFailure::of(loss, self.exception(error))
    }

    fn exception(&self, error: CdrError) -> SystemException {
        match error {
            CdrError::NoWcharSet => self.no_wide_text().with_source(error),
            CdrError::NotRepresentable { .. } if self.chosen.is_none() => {
                let cause = error.clone();
                SystemException::from(error).with_detail(move || {
                    format!(
                        "{cause}: the reference names no code sets, unlike an IOR of its server (-ORBDefaultCharCodeSet \
                         sets the code set to assume), and the server does not forward it"
                    )
                })
            }
            _ => error.into(),
        }
    }

    /// The exception for wide text without a component, with one that names no wide code set, or without
    /// agreement (7.10.2.6).
    fn no_wide_text(&self) -> SystemException {
        match self.wide {
            (own, server) if own != WcharSet::Unknown && server != 0 => SystemException::codeset_incompatible(
                minor::NO_COMMON_CODE_SET,
                CompletionStatus::No,
            )
            .with_detail(|| {
                format!(
                    "the server's native code set for wchar is {}, ours {own}, and neither side converts to that of the \
                         other (-ORBNativeWCharCodeSet, -ORBConversionWCharCodeSets)",
                    CodeSetName(server)
                )
            }),
            (_, 0) => {
                let minor = if self.chosen.is_some() { minor::WCHAR_NOT_SUPPORTED } else { minor::CODE_SETS_REQUIRED };
                SystemException::inv_objref(minor, CompletionStatus::No).with_detail(
                    "the reference names no code set for wide characters (-ORBDefaultWCharCodeSet sets the code set to assume)",
                )
            }
            _ => SystemException::bad_param(minor::NO_WCHAR_CODE_SET, CompletionStatus::No)
                .with_detail("this ORB has no native code set for wide characters (-ORBNativeWCharCodeSet)"),
        }
    }
}

/// Parses code sets from the command line: names or numbers with commas between, `all`, or `none`.
pub(crate) fn parse_list<S: std::str::FromStr>(text: &str, all: impl Iterator<Item = S>) -> Result<Vec<S>, S::Err> {
    match text {
        "all" => Ok(all.collect()),
        "none" => Ok(Vec::new()),
        list => list.split(',').map(str::parse).collect(),
    }
}
