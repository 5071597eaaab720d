//! Adapter policies and their conflicts (15.3.8).

use std::collections::HashSet;

use spandrel::poa::{
    EtherealizeObjects, IdAssignmentPolicy, IdUniquenessPolicy, IfMissing, ImplicitActivationPolicy, LifespanPolicy,
    PoaError, RequestProcessingPolicy, ServantRetentionPolicy, ThreadPolicy, WaitForCompletion,
};
use spandrel::policy::{Policy, PolicyType};
use spandrel_conformance_tests::support::Pair;

/// One value of each of the seven policies.
#[derive(Clone, Copy, Debug)]
struct PolicyCombination {
    thread: ThreadPolicy,
    lifespan: LifespanPolicy,
    uniqueness: IdUniquenessPolicy,
    assignment: IdAssignmentPolicy,
    activation: ImplicitActivationPolicy,
    retention: ServantRetentionPolicy,
    processing: RequestProcessingPolicy,
}

impl PolicyCombination {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for thread in [ThreadPolicy::OrbCtrlModel, ThreadPolicy::SingleThreadModel, ThreadPolicy::MainThreadModel] {
            for lifespan in [LifespanPolicy::Transient, LifespanPolicy::Persistent] {
                for uniqueness in [IdUniquenessPolicy::UniqueId, IdUniquenessPolicy::MultipleId] {
                    for assignment in [IdAssignmentPolicy::UserId, IdAssignmentPolicy::SystemId] {
                        for activation in [
                            ImplicitActivationPolicy::ImplicitActivation,
                            ImplicitActivationPolicy::NoImplicitActivation,
                        ] {
                            for retention in [ServantRetentionPolicy::Retain, ServantRetentionPolicy::NonRetain] {
                                for processing in [
                                    RequestProcessingPolicy::UseActiveObjectMapOnly,
                                    RequestProcessingPolicy::UseDefaultServant,
                                    RequestProcessingPolicy::UseServantManager,
                                ] {
                                    all.push(Self {
                                        thread,
                                        lifespan,
                                        uniqueness,
                                        assignment,
                                        activation,
                                        retention,
                                        processing,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
        all
    }

    /// The policies in the order of their types.
    fn policies(self) -> [Policy; 7] {
        [
            self.thread.into(),
            self.lifespan.into(),
            self.uniqueness.into(),
            self.assignment.into(),
            self.activation.into(),
            self.retention.into(),
            self.processing.into(),
        ]
    }

    /// The types of the policies that conflict; empty for a legal combination.
    fn conflicts(self) -> HashSet<PolicyType> {
        let mut conflicts = HashSet::new();
        let retains = self.retention == ServantRetentionPolicy::Retain;
        // 15.3.8.6: NON_RETAIN requires USE_DEFAULT_SERVANT or USE_SERVANT_MANAGER; 15.3.8.7:
        // USE_ACTIVE_OBJECT_MAP_ONLY requires RETAIN.
        if !retains && self.processing == RequestProcessingPolicy::UseActiveObjectMapOnly {
            conflicts.extend([21, 22]);
        }
        // 15.3.8.7: USE_DEFAULT_SERVANT requires MULTIPLE_ID.
        if self.processing == RequestProcessingPolicy::UseDefaultServant
            && self.uniqueness == IdUniquenessPolicy::UniqueId
        {
            conflicts.extend([22, 18]);
        }
        // 15.3.8.5: IMPLICIT_ACTIVATION requires SYSTEM_ID and RETAIN.
        if self.activation == ImplicitActivationPolicy::ImplicitActivation {
            if self.assignment != IdAssignmentPolicy::SystemId {
                conflicts.extend([20, 19]);
            }
            if !retains {
                conflicts.extend([20, 21]);
            }
        }
        conflicts
    }
}

#[test]
fn every_illegal_policy_combination_is_refused_with_the_index_of_a_conflicting_policy() {
    let pair = Pair::new();
    let mut legal = 0;
    for (number, choice) in PolicyCombination::all().into_iter().enumerate() {
        let conflicts = choice.conflicts();
        let name = number.to_string();
        match pair.root.create_poa(&name, None, choice.policies()) {
            Ok(poa) => {
                assert!(conflicts.is_empty(), "{choice:?} was accepted");
                legal += 1;
                poa.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
            }
            Err(PoaError::InvalidPolicy { index, .. }) => {
                assert!(!conflicts.is_empty(), "{choice:?} was refused for its policy {index}");
                let offender = choice.policies()[usize::from(index)].policy_type();
                assert!(
                    conflicts.contains(&offender),
                    "{choice:?} was refused for its policy {index}, type {offender}"
                );
                assert!(
                    pair.root.find_poa(&name, IfMissing::Fail).is_err(),
                    "{choice:?}: an adapter was created nevertheless"
                );
            }
            Err(other) => panic!("{choice:?}: {other}"),
        }
    }
    assert!(legal > 0 && legal < PolicyCombination::all().len());
}

/// 15.3.8: policies have the type numbers of the IDL.
#[test]
fn policies_have_the_standards_type_numbers() {
    let choice = PolicyCombination::all()[0];
    assert_eq!(choice.policies().map(|policy| policy.policy_type()), [16, 17, 18, 19, 20, 21, 22]);
}
