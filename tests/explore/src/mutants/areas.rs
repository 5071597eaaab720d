//! The areas: which files are mutated, and which tests guard them.

/// Files of one package, with the tests that guard them.
#[derive(Debug)]
pub(super) struct Area {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    /// The mutated files below the root, as patterns of cargo-mutants.
    pub(super) files: &'static [&'static str],
    /// Of the mutants in their order, every nth is tested: 1 for all.
    pub(super) every: usize,
    /// The tests. A later suite runs only for mutants that the ones before have not caught.
    pub(super) suites: &'static [Suite],
    /// The folders of the package and of the tests. The results are void once a file in one of them differs.
    pub(super) folders: &'static [&'static str],
}

/// Tests of one package.
#[derive(Debug)]
pub(super) struct Suite {
    pub(super) package: &'static str,
    /// The options of `cargo test` that select test programs.
    pub(super) programs: &'static [&'static str],
    /// The words for each test program that select tests.
    pub(super) tests: &'static [&'static str],
}

pub(super) const AREAS: [Area; 7] = [
    Area {
        name: "connection",
        package: "spandrel-connection",
        files: &["orb/connection/src/*.rs"],
        every: 1,
        suites: &[Suite { package: "spandrel-connection", programs: &["--lib"], tests: &[] }],
        folders: &["orb/connection"],
    },
    Area {
        name: "cdr",
        package: "spandrel-cdr",
        files: &[
            "orb/cdr/src/decoder.rs",
            "orb/cdr/src/decoder/*.rs",
            "orb/cdr/src/walk.rs",
            "orb/cdr/src/walk/*.rs",
            "orb/cdr/src/value_type/chunk.rs",
            "orb/cdr/src/value_type/read.rs",
            "orb/cdr/src/bounded.rs",
        ],
        every: 3,
        suites: &[Suite {
            package: "spandrel-cdr",
            programs: &["--lib", "--test=cdr"],
            tests: &["--skip=layout_derives::"],
        }],
        folders: &["orb/cdr"],
    },
    Area {
        name: "giop",
        package: "spandrel-giop",
        files: &[
            "orb/giop/src/assembler.rs",
            "orb/giop/src/fragments.rs",
            "orb/giop/src/header.rs",
            "orb/giop/src/body.rs",
            "orb/giop/src/context.rs",
            "orb/giop/src/request.rs",
            "orb/giop/src/reply.rs",
            "orb/giop/src/locate.rs",
            "orb/giop/src/target.rs",
            "orb/giop/src/profile.rs",
        ],
        every: 3,
        suites: &[Suite { package: "spandrel-giop", programs: &["--lib"], tests: &[] }],
        folders: &["orb/giop"],
    },
    Area {
        name: "authorization",
        package: "spandrel-authorization",
        files: &["orb/authorization/src/*.rs"],
        every: 1,
        suites: &[
            Suite { package: "spandrel-authorization", programs: &["--lib"], tests: &[] },
            Suite { package: "spandrel-orb-tests", programs: &["--test=interception"], tests: &["authorization::"] },
        ],
        folders: &["orb/authorization", "tests/orb"],
    },
    Area {
        name: "store",
        package: "spandrel-store",
        files: &["services/store/src/redo_log.rs", "services/store/src/header.rs"],
        every: 1,
        suites: &[
            Suite { package: "spandrel-store", programs: &["--lib"], tests: &[] },
            Suite { package: "spandrel-naming", programs: &["--test=naming"], tests: &["redo_log::", "files::"] },
        ],
        folders: &["services/store", "services/naming"],
    },
    Area {
        name: "naming",
        package: "spandrel-naming",
        files: &[
            "services/naming/src/store.rs",
            "services/naming/src/encoding.rs",
            "services/naming/src/redb_store.rs",
            "services/naming/src/redb_store/change.rs",
            "services/naming/src/redb_store/failure.rs",
            "services/naming/src/redb_store/opened.rs",
            "services/naming/src/redb_store/query.rs",
            "services/naming/src/redb_store/shared.rs",
            "services/naming/src/redb_store/tables.rs",
        ],
        every: 1,
        suites: &[
            // Without the tests that try every operation of the disk.
            Suite {
                package: "spandrel-naming",
                programs: &["--lib", "--test=naming"],
                tests: &[
                    "encoding::",
                    "files::",
                    "redo_log::",
                    "store::",
                    "--skip=survive",
                    "--skip=at_every_write",
                    "--skip=at_any_operation",
                    "--skip=damage_while",
                    "--skip=a_damaged_file",
                ],
            },
            Suite {
                package: "spandrel-naming",
                programs: &["--test=naming"],
                tests: &["files::", "redo_log::", "store::"],
            },
        ],
        folders: &["services/naming"],
    },
    Area {
        name: "proxy",
        package: "spandrel-proxy",
        files: &[
            "services/proxy/src/catalogue.rs",
            "services/proxy/src/proxy.rs",
            "services/proxy/src/http/authentication.rs",
            "services/proxy/src/http/origin.rs",
        ],
        every: 2,
        suites: &[Suite {
            package: "spandrel-proxy",
            programs: &["--test=proxy"],
            tests: &["--skip=executable::", "--skip=a_thousand_clients"],
        }],
        folders: &["services/proxy"],
    },
];
