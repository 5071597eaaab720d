//! The sentences of the static part that a test can show, each with its tests.
//!
//! They are those of Real-time CORBA 1.2 (formal/05-01-04), by the subjects of its sections and in our words; the titles were
//! not compared with its text. Sentences on programs, on other documents and on the dynamic part are left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A section, and its sentences with the tests that show them.
type Section = (&'static str, &'static [(&'static str, &'static [&'static str])]);

const SECTIONS: &[Section] = &[
    (
        "Native Thread Priorities",
        &[
            (
                "A native priority is one of the scheduling class of the system.",
                &["the_current_sets_the_native_priority_or_raises_the_standards_exceptions"],
            ),
            (
                "A class that the process may not use is replaced, and that is stated.",
                &["without_rights_the_class_is_replaced", "the_class_in_force_is_printed"],
            ),
        ],
    ),
    (
        "CORBA Priority",
        &[
            (
                "A priority is from 0 to 32767, and a greater one is more urgent.",
                &[
                    "a_negative_number_is_no_priority",
                    "the_most_urgent_request_is_first_then_the_earliest_deadline_then_the_oldest",
                ],
            ),
            (
                "Priorities keep their order when they are mapped.",
                &["mappings_keep_the_order_and_stay_in_range", "the_linear_mapping_covers_both_ranges"],
            ),
        ],
    ),
    (
        "CORBA Priority Mappings",
        &[
            (
                "A mapping may have no native priority for a priority, and the reverse.",
                &["the_other_mappings_refuse_what_has_no_native_priority"],
            ),
            (
                "Without a native priority, the operation raises DATA_CONVERSION.",
                &[
                    "the_current_sets_the_native_priority_or_raises_the_standards_exceptions",
                    "a_priority_without_a_native_one_is_refused_by_a_pool_without_lanes",
                ],
            ),
            (
                "A mapping or transform of the program that fails costs one request.",
                &["a_transform_or_mapping_that_panics_costs_its_request_alone"],
            ),
        ],
    ),
    (
        "Real-time ORB",
        &[
            (
                "The operations of the local interfaces are implemented.",
                &["each_operation_of_the_local_interfaces_is_implemented"],
            ),
            (
                "Policies are created by `create_policy` as well.",
                &["policies_are_created_from_values_of_the_standards_types", "policies_have_the_standards_numbers"],
            ),
            (
                "Policies of adapters may be set for the ORB, and not for a thread or a reference.",
                &["policies_of_adapters_are_an_orbs_alone", "an_orb_has_policies_for_its_adapters"],
            ),
            (
                "Each thread of the ORB has a priority that the program chooses.",
                &["threads_of_an_orb_have_the_native_priority_of_the_thread_that_builds_it"],
            ),
        ],
    ),
    (
        "Real-time POA",
        &[
            (
                "Operations with a priority have the exceptions of the standard.",
                &["operations_with_a_priority_have_the_exceptions_of_the_standard"],
            ),
            (
                "Policies of an adapter that contradict each other raise InvalidPolicy with the index of one.",
                &["policies_that_contradict_each_other_are_named_with_their_index"],
            ),
            (
                "Objects that are activated with a priority have it in place of that of the policy.",
                &["declared_priorities_are_those_of_objects_and_contexts_do_not_change_them"],
            ),
            (
                "Without a policy for a thread pool, the ORB has one.",
                &["without_a_thread_pool_policy_requests_run_in_the_default_pool"],
            ),
        ],
    ),
    (
        "Real-time Current",
        &[
            (
                "The priority of the current thread may be set and read; BAD_PARAM is for other numbers, INITIALIZE \
                 for a thread without one.",
                &["the_current_sets_the_native_priority_or_raises_the_standards_exceptions"],
            ),
            (
                "During an upcall it is the priority at which the request runs.",
                &["a_request_runs_at_its_priority_for_the_current"],
            ),
            (
                "A priority that an upcall gives its thread ends with it.",
                &["a_native_priority_that_a_request_gives_its_thread_ends_with_it"],
            ),
        ],
    ),
    (
        "Real-time CORBA Priority Models",
        &[
            (
                "With CLIENT_PROPAGATED, requests carry the priority of the client's thread (RTCorbaPriority).",
                &[
                    "client_propagated_calls_of_each_kind_carry_the_priority_of_their_thread",
                    "the_priority_context_is_a_short_in_an_encapsulation",
                ],
            ),
            (
                "The servant runs at that priority, and its own calls carry it on.",
                &[
                    "a_server_reads_the_priority_of_remote_and_collocated_calls",
                    "nested_calls_carry_the_priority_of_the_request_that_a_lane_runs",
                ],
            ),
            (
                "A request without the context runs at the priority of the policy.",
                &[
                    "without_a_context_a_request_has_the_priority_of_the_policy_and_either_byte_order_is_read",
                    "a_client_of_omniorb_gets_the_priority_of_the_policy",
                ],
            ),
            (
                "With SERVER_DECLARED, requests carry none, and contexts are ignored.",
                &[
                    "other_references_get_no_priority",
                    "declared_priorities_are_those_of_objects_and_contexts_do_not_change_them",
                ],
            ),
            (
                "References carry the priority model (TAG_POLICIES), and clients obey that of the object's last place.",
                &[
                    "the_component_is_a_sequence_of_policies",
                    "the_policies_of_the_place_that_an_object_is_forwarded_to_count",
                ],
            ),
            (
                "A client without Real-time CORBA ignores the policies.",
                &["an_orb_without_the_part_ignores_the_policies"],
            ),
            ("Replies may carry the priority.", &["replies_of_client_propagated_objects_carry_the_priority"]),
            (
                "Collocated calls have the priority of the model.",
                &[
                    "a_collocated_caller_waits_for_the_lane_and_a_thread_of_the_lane_calls_itself",
                    "a_direct_call_runs_in_the_calling_thread_only_if_that_is_of_the_lane",
                ],
            ),
        ],
    ),
    (
        "Priority Transforms",
        &[
            (
                "An inbound transform changes the priority of requests before their upcall.",
                &["a_priority_transform_changes_the_priority_of_requests"],
            ),
            (
                "An outbound transform changes that of the calls that servants make.",
                &["the_outbound_transform_changes_the_priority_of_calls_of_servants_alone"],
            ),
        ],
    ),
    (
        "Mutex Interface",
        &[
            (
                "A mutex has the priority protocol of the ORB's own: priority inheritance.",
                &[
                    "the_holder_of_a_mutex_has_the_priority_of_a_waiting_thread_also_when_it_was_demoted",
                    "inversion_occurs_with_the_ordinary_lock_and_not_with_the_inheriting_one",
                ],
            ),
            (
                "`try_lock` waits for at most the given time, and not at all for zero.",
                &["each_operation_of_the_local_interfaces_is_implemented"],
            ),
            (
                "Mutexes with names are shared (extension).",
                &[
                    "named_mutexes_are_shared_for_as_long_as_someone_has_them",
                    "unused_names_make_room_and_used_ones_are_bounded",
                ],
            ),
        ],
    ),
    (
        "Threadpools",
        &[
            (
                "A pool is known by its number until it is destroyed; InvalidThreadpool is for others.",
                &["thread_pools_have_numbers_that_are_valid_until_they_are_destroyed"],
            ),
            (
                "Static threads exist from the creation on, and dynamic ones are created while all are busy.",
                &[
                    "dynamic_threads_are_started_when_all_are_busy_and_end_when_idle",
                    "dynamic_threads_of_a_fixed_life_span_end_after_it_and_infinite_ones_stay",
                ],
            ),
            (
                "A lane runs the requests of its priority, and those up to the next lane.",
                &["a_request_goes_to_the_most_urgent_lane_that_is_not_above_it"],
            ),
            (
                "A pool without lanes gives its threads the priority of the request, and then their own.",
                &["threads_have_the_native_priority_of_their_request_and_get_their_own_back"],
            ),
            (
                "A request that finds no thread of its lane may borrow one of a lower lane, at its own priority.",
                &[
                    "threads_of_lower_lanes_are_borrowed_and_never_those_of_higher_ones",
                    "an_idle_thread_of_a_lower_lane_is_borrowed_at_the_priority_of_the_request",
                    "a_lane_starts_its_dynamic_threads_then_borrows_from_the_next_lower_lane_and_then_buffers",
                ],
            ),
            (
                "Requests without a thread are buffered, up to a number of requests and of octets.",
                &["buffers_are_bounded_by_requests_and_by_octets_for_each_lane"],
            ),
            (
                "Without buffering, and without room, they are refused with TRANSIENT.",
                &[
                    "without_buffering_a_busy_lane_refuses_and_the_others_do_not",
                    "a_busy_lane_without_buffering_refuses_with_transient_and_the_other_lane_serves",
                ],
            ),
            (
                "What a pool reserves is bounded, and the sum of all pools as well.",
                &[
                    "settings_that_contradict_themselves_are_refused",
                    "pools_reserve_no_more_threads_together_than_the_limit",
                    "pools_reserve_no_more_memory_together_than_the_limit",
                    "a_program_that_creates_pools_without_end_is_refused",
                    "numbers_of_four_thousand_millions_are_refused_before_anything_is_reserved",
                ],
            ),
            (
                "A destroyed pool gives its threads and requests back.",
                &[
                    "a_destroyed_pool_discards_what_waits_and_refuses_what_comes",
                    "the_end_of_a_pool_refuses_the_requests_that_wait_and_later_ones",
                ],
            ),
        ],
    ),
    (
        "Implicit and Explicit Binding",
        &[
            (
                "`_validate_connection` binds, and returns the policies that cannot be reconciled.",
                &[
                    "a_valid_connection_is_opened_by_a_locate_request",
                    "policies_that_cannot_be_reconciled_are_listed_and_end_calls",
                ],
            ),
            ("A binding that is lost or forwarded is made again.", &["a_binding_follows_the_object_and_its_policies"]),
        ],
    ),
    (
        "Priority Banded Connections",
        &[
            (
                "A call uses the connection of the band that has its priority.",
                &["calls_use_the_connection_of_their_band", "many_threads_of_one_band_share_its_connection"],
            ),
            (
                "With SERVER_DECLARED, the band is that of the object's priority.",
                &["the_servers_priority_selects_the_band_of_a_server_declared_object"],
            ),
            (
                "Explicit binding opens the connection of each band, and sends `_bind_priority_band` with \
                 RTCorbaPriorityRange.",
                &["explicit_binding_opens_and_binds_a_connection_for_each_band", "the_range_context_is_two_shorts"],
            ),
            (
                "A server without lanes for the band refuses it with INV_POLICY.",
                &[
                    "a_connection_is_bound_to_a_band_that_the_lanes_serve",
                    "a_server_without_bands_is_bound_and_a_refusal_is_reported",
                ],
            ),
            (
                "Bands that overlap, or are empty, are refused with BAD_PARAM.",
                &["policies_that_contradict_themselves_are_refused"],
            ),
            (
                "A call whose priority is in no band, and bands of client and server, raise INV_POLICY.",
                &[
                    "policies_that_cannot_be_reconciled_are_listed_and_end_calls",
                    "a_server_refuses_clients_whose_policies_contradict_those_of_its_adapter",
                    "a_server_without_bands_of_its_own_obeys_those_of_its_clients",
                ],
            ),
        ],
    ),
    (
        "Private Connection Policy",
        &[(
            "A private connection carries the requests of one reference.",
            &["a_private_connection_is_used_by_one_reference_and_closed_with_it"],
        )],
    ),
    (
        "Invocation Timeout",
        &[(
            "A call ends with its relative round-trip time, also while it waits for another writer.",
            &["waiting_for_another_writer_is_bounded_by_the_timeout", "a_late_request_is_not_begun"],
        )],
    ),
    (
        "Protocol Configuration",
        &[
            (
                "References have the protocols of the server's policy, in its order.",
                &["references_have_the_listed_protocols_in_the_order_of_the_policy"],
            ),
            (
                "A protocol that the server lacks makes the policy invalid.",
                &["a_protocol_without_an_endpoint_makes_the_policy_invalid"],
            ),
            (
                "A client tries the protocols of its policy in their order, and no others.",
                &[
                    "the_clients_protocols_are_tried_in_their_order",
                    "a_reference_without_a_permitted_protocol_raises_inv_policy",
                ],
            ),
            (
                "The client's protocols may be in the reference, and then not be the client's as well.",
                &["the_protocols_in_a_reference_are_obeyed_and_contradict_those_of_the_client"],
            ),
            (
                "The properties of a protocol are those of its sockets.",
                &[
                    "sockets_have_the_properties_of_the_clients_protocol",
                    "sockets_that_a_lane_accepts_have_the_properties_of_the_policy",
                    "properties_of_protocols_refuse_negative_sizes",
                ],
            ),
            (
                "Packets may have a network priority that the request's priority is mapped to.",
                &[
                    "a_network_priority_that_is_no_code_point_is_refused",
                    "replies_have_the_network_priority_of_their_request",
                ],
            ),
        ],
    ),
    (
        "beyond the standard: the order of messages",
        &[
            (
                "The most urgent request that has not begun is sent first.",
                &[
                    "the_most_urgent_call_that_waits_for_a_server_is_sent_first",
                    "the_first_request_that_is_sent_has_the_contexts_of_its_connection_whichever_that_is",
                ],
            ),
            (
                "The most urgent reply that has not begun is sent first, also if a servant has deferred it.",
                &[
                    "the_most_urgent_reply_that_has_not_begun_leaves_first",
                    "the_most_urgent_deferred_reply_that_has_not_begun_leaves_first",
                ],
            ),
            (
                "The fragments of a message that has begun are not interleaved with another message.",
                &[
                    "a_request_in_fragments_that_has_begun_is_sent_whole_before_an_urgent_one",
                    "a_reply_in_fragments_that_has_begun_is_written_whole_before_an_urgent_one",
                ],
            ),
        ],
    ),
];

/// The folders with the tests, below the folder of all crates.
const FOLDERS: [&str; 3] = ["orb/rt/src/tests", "tests/orb/tests", "net/sync/tests"];

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The names of the functions with the attribute `#[test]` in this text.
fn tests(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            is_test = true;
        } else if let Some(function) = line.strip_prefix("fn ").filter(|_| is_test) {
            names.extend(function.split_once('(').map(|(name, _)| name.to_owned()));
            is_test = false;
        }
    }
    names
}

#[test]
fn each_sentence_names_tests_that_exist() {
    let all_crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| sources(&all_crates.join(folder), &mut files));
    let existing: BTreeSet<String> = files.iter().flat_map(|file| tests(&fs::read_to_string(file).unwrap())).collect();
    assert!(existing.len() > 100, "{} tests", existing.len());
    let mut sentences = BTreeSet::new();
    let mut absent: Vec<&str> = Vec::new();
    for (section, sentence, names) in
        SECTIONS.iter().flat_map(|(section, rows)| rows.iter().map(move |(sentence, names)| (section, sentence, names)))
    {
        assert!(sentences.insert((section, sentence)), "twice: {sentence}");
        assert!(!names.is_empty() && sentence.ends_with('.'), "{section}: {sentence}");
        absent.extend(names.iter().copied().filter(|name| !existing.contains(*name)));
    }
    assert!(absent.is_empty(), "no such tests: {absent:?}");
    assert!(sentences.len() >= 50, "{} sentences", sentences.len());
}

#[test]
fn a_name_in_a_comment_is_no_test() {
    let lines = [
        "// fn old() {}",
        "fn helper() {}",
        "#[test]",
        "#[cfg(unix)]",
        "    fn new_one() {",
        "#[test]",
        "fn another(x: i32)",
    ];
    assert_eq!(tests(&lines.join("\n")), ["new_one", "another"]);
}
