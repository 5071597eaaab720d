//! The lookup of object, priority and operation of a request: its instructions do not depend on the numbers of objects and
//! operations.

use std::hint::black_box;
use std::path::Path;
use std::process::Stdio;

use spandrel_orb::{OperationDemux, Operations};
use spandrel_poa::measured_lookup::Lookup;
use spandrel_poa::{ExecutorPolicy, ObjectDemux};
use spandrel_server::RequestToPlace;
use spandrel_test_support::{ChildProcess, this_program};

use super::*;

/// The variable with the numbers of objects and operations, by which this program measures.
const NUMBERS: &str = "SPANDREL_LOOKUPS";
/// The test below, as the program names it.
const TEST: &str =
    "tests::server::lookup::a_lookup_takes_as_many_instructions_among_many_objects_and_operations_as_among_few";
/// The lookups that are counted.
const LOOKUPS: usize = 1_000;

/// The key and the id of an object.
type Target = (Vec<u8>, Vec<u8>);

/// The steps of the reading thread for each request before it has its servant: the adapter and the object from the key, the
/// priority and the lane, and the operation.
#[inline(never)]
fn look_up_all(
    lookup: &Lookup,
    executor: &ExecutorPolicy,
    targets: &[Target],
    operations: &Operations,
    names: &[String],
) {
    let contexts = spandrel_giop::ServiceContexts::default();
    for (at, (key, id)) in targets.iter().enumerate() {
        let servant = lookup.find(key).expect("each object is active");
        lookup.release(key, servant);
        let operation = &names[at % names.len()];
        let request =
            RequestToPlace { object_id: id, operation, contexts: &contexts, is_collocated: false, endpoint: None };
        let placement = executor.0.choose_thread(&request).expect("each priority has a lane");
        assert!(matches!(black_box(placement), spandrel_server::Placement::HandOver { level: 100, .. }));
        assert!(black_box(operations.find(operation, OperationDemux::PerfectHash)).is_some());
    }
}

/// Activates this number of objects, and looks some of them up.
fn measure(folder: &Path, demux: ObjectDemux, objects: usize, count: usize) {
    let server = Server::new(PoolSettings::with_lanes(vec![lane(0, 1), lane(100, 1)]));
    let model = PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: priority(100) };
    let policies: [Policy; 2] = [model.into(), ThreadpoolPolicy(server.pool).into()];
    let builder = server.root.child("measured").multiple_ids().policy(demux).holding();
    let builder = if demux == ObjectDemux::Active { builder } else { builder.user_ids() };
    let adapter = builder.real_time(&server.rt_orb, policies).unwrap().create().unwrap();
    let servant: Arc<dyn Servant> = Arc::<Sensor>::clone(&server.sensor);
    let activate = |number: usize| {
        if demux == ObjectDemux::Active {
            return adapter.activate_object(Arc::clone(&servant)).unwrap();
        }
        let id = format!("{number:08}").into_bytes().into();
        adapter.activate_object_with_id(&id, Arc::clone(&servant)).unwrap();
        id
    };
    let ids: Vec<_> = (0..objects).map(activate).collect();
    adapter.the_poa_manager().activate().unwrap();
    let target = |at: usize| {
        let id = &ids[at * 7_919 % ids.len()];
        let reference = adapter.id_to_reference(id).unwrap();
        let profile = IiopProfile::decode(&reference.ior().profiles[0]).unwrap().unwrap();
        (profile.object_key, id.to_vec())
    };
    let targets: Vec<Target> = (0..LOOKUPS).map(target).collect();
    let names: Vec<String> = (0..count).map(|number| format!("operation_{number:06}")).collect();
    let tables = spandrel_demux::perfect::Tables::of(&names).unwrap();
    let static_names: Vec<&'static str> = names.iter().map(|name| &*name.clone().leak()).collect();
    let operations = Operations::new(static_names.leak(), tables.seed, tables.to_octets().unwrap().leak());
    let executor = adapter.policy(ExecutorPolicy::POLICY_TYPE).unwrap();
    // Without instrumentation until here, which takes ten times as long.
    std::fs::write(folder.join("ready"), "").unwrap();
    wait_until("the instrumentation", || folder.join("instrumented").exists());
    look_up_all(&Lookup::new(&adapter, false), executor.value().unwrap(), &targets, &operations, &names);
}

/// The instructions of the lookups of a process, by callgrind.
fn instructions(demux: &str, objects: usize, operations: usize) -> Option<u64> {
    let program = this_program();
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile");
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind", "--instr-atstart=no", "--toggle-collect=*look_up_all*"]);
    command.arg(format!("--callgrind-out-file={}", profile.display()));
    command.arg(program.get_program()).args(program.get_args()).args(["--exact", TEST, "--nocapture"]);
    let folder_name = folder.path().display();
    command.env(NUMBERS, format!("{folder_name} {demux} {objects} {operations}")).stdout(Stdio::null());
    let mut process = match ChildProcess::try_start(&mut command) {
        Ok(process) => process,
        Err(error) => {
            assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "valgrind: {error}");
            return None;
        }
    };
    wait_until("the objects", || {
        assert!(process.try_wait().unwrap().is_none(), "it ended");
        folder.path().join("ready").exists()
    });
    let begun = Command::new("callgrind_control").args(["-i", "on", &process.id().to_string()]).output().unwrap();
    assert!(begun.status.success(), "{}", String::from_utf8_lossy(&begun.stderr));
    std::fs::write(folder.path().join("instrumented"), "").unwrap();
    assert!(process.wait().unwrap().success());
    let text = std::fs::read_to_string(profile).unwrap();
    let total = text.lines().find_map(|line| line.strip_prefix("summary: ").or_else(|| line.strip_prefix("totals: ")));
    Some(total.expect("a sum").trim().parse().unwrap())
}

#[test]
fn a_lookup_takes_as_many_instructions_among_many_objects_and_operations_as_among_few() {
    if let Ok(numbers) = std::env::var(NUMBERS) {
        let [folder, demux, objects, operations] = numbers.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{numbers}")
        };
        let demux = if demux == "active" { ObjectDemux::Active } else { ObjectDemux::PerfectHash };
        return measure(Path::new(folder), demux, objects.parse().unwrap(), operations.parse().unwrap());
    }
    for (demux, objects) in [("active", 100_000), ("perfect", 10_000)] {
        let Some(few) = instructions(demux, 10, 10) else { return eprintln!("absent: valgrind") };
        let many = instructions(demux, objects, 1_000).unwrap();
        let [few, many] = [few, many].map(|total| total / LOOKUPS as u64);
        println!("{demux}: {few} instructions among 10 objects, {many} among {objects}");
        assert!(few > 100, "{few}");
        assert!(many <= few + few / 20, "{demux}: {few} among few objects and operations, {many} among many");
    }
}
