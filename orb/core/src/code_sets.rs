//! Which code sets text travels in: what an ORB is told to prefer and to offer, and what it agrees on with one server.
//!
//! The choice itself is the protocol's (`spandrel-giop`), conversion that of CDR.

use spandrel_cdr::{CdrError, GiopVersion, WcharSet, Wire};
use spandrel_giop::{
    CompletionStatus, GiopError, IiopProfile, NoCommonCodeSet, OwnCodeSets, ServiceContext, SystemException,
    TransmissionCodeSets,
    component::{CodeSetName, Component},
    ids, minor,
};

/// What was agreed on with a server, by what its reference says.
#[derive(Clone, Debug)]
pub(crate) struct Agreement {
    chosen: Option<TransmissionCodeSets>,
    /// What the first request of a connection says, if the reference names code sets.
    context: Option<ServiceContext>,
    /// The native code sets for wide text on both sides.
    wide: (WcharSet, u32),
}

impl Agreement {
    /// What to agree on with the server of this profile, in this version.
    ///
    /// # Errors
    /// [`GiopError::Profile`] for a component that cannot be read; inside, that there is nothing to agree on.
    pub(crate) fn of(
        profile: &IiopProfile,
        own: &OwnCodeSets,
        version: GiopVersion,
    ) -> Result<Result<Self, NoCommonCodeSet>, GiopError> {
        let (mut named, mut is_ours) = (None, false);
        // GIOP 1.0 knows of no code sets.
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
        let assumed = own.assumed.filter(|_| version >= GiopVersion::V1_1);
        let chosen = named.map_or(Ok(assumed), |named| choose(named).map(Some));
        Ok(chosen.map(|chosen| {
            let context = chosen.map(TransmissionCodeSets::to_context);
            Self { chosen, context, wide }
        }))
    }

    /// What the reference's connections are told apart by.
    pub(crate) fn chosen(&self) -> Option<TransmissionCodeSets> {
        self.chosen
    }

    /// The agreement under which requests are written.
    pub(crate) fn on(&self, wire: Wire) -> Wire {
        self.chosen.unwrap_or(TransmissionCodeSets::UNNEGOTIATED).on(wire)
    }

    /// What a connection is told, once.
    #[inline]
    pub(crate) fn context(&self) -> &[ServiceContext] {
        self.context.as_slice()
    }

    /// The exception for arguments that cannot be written.
    pub(crate) fn not_encodable(&self, error: CdrError) -> SystemException {
        match error {
            CdrError::NoWcharSet => self.no_wide_text().with_source(error),
            CdrError::NotRepresentable { .. } if self.chosen.is_none() => {
                let cause = error.clone();
                SystemException::from(error).with_detail(move || {
                    format!(
                        "{cause}: the reference names no code sets, as an IOR of its server would (-ORBDefaultCharCodeSet \
                         says what to assume)"
                    )
                })
            }
            _ => error.into(),
        }
    }

    /// Without a component, with one that names none for wide characters, or without agreement (7.10.2.6).
    fn no_wide_text(&self) -> SystemException {
        match self.wide {
            (own, server) if own != WcharSet::Unknown && server != 0 => SystemException::codeset_incompatible(
                minor::NO_COMMON_CODE_SET,
                CompletionStatus::No,
            )
            .with_detail(|| {
                format!(
                    "the server's native code set for wchar is {}, ours {own}, and neither side converts to what the \
                         other has (-ORBNativeWCharCodeSet, -ORBConversionWCharCodeSets)",
                    CodeSetName(server)
                )
            }),
            (_, 0) => {
                let minor = if self.chosen.is_some() { minor::WCHAR_NOT_SUPPORTED } else { minor::CODE_SETS_REQUIRED };
                SystemException::inv_objref(minor, CompletionStatus::No).with_detail(
                    "the reference names no code set for wide characters (-ORBDefaultWCharCodeSet says what to assume)",
                )
            }
            _ => SystemException::bad_param(minor::NO_WCHAR_CODE_SET, CompletionStatus::No)
                .with_detail("this ORB has no native code set for wide characters (-ORBNativeWCharCodeSet)"),
        }
    }
}

/// Code sets as a command line lists them: names or numbers with commas between, `all`, or `none`.
pub(crate) fn listed<S: std::str::FromStr>(text: &str, all: impl Iterator<Item = S>) -> Result<Vec<S>, S::Err> {
    match text {
        "all" => Ok(all.collect()),
        "none" => Ok(Vec::new()),
        list => list.split(',').map(str::parse).collect(),
    }
}
