//! Profiles: their files, the layers of their functions, and those of the short run.

use spandrel_laboratory::profile::callgrind::{Function, Profile};
use spandrel_laboratory::profile::layers::{Layer, LayerCosts};
use spandrel_laboratory::profile::sampling::Samples;
use spandrel_laboratory::profile::strace::{Calls, Purpose, Trace};
use spandrel_laboratory::{Folder, PointResult};

use crate::support::results;

/// Two calls of a stub that encodes through a function of the standard library, as callgrind writes it down.
const PROFILE: &str = "\
# callgrind format
version: 1
creator: callgrind-3.19.0
cmd: spandrel-lab peer
positions: line
events: Ir sysCount sysTime sysCpuTime
summary: 1180

ob=(1) /usr/bin/spandrel-lab
fl=(1) ???
fn=(1) spandrel_orb::invocation::invoke
0 100
cfn=(2) <alloc::vec::Vec<T> as spandrel_cdr::Wire>::encode::h0123456789abcdef
calls=2 0
0 1050
cob=(2) /lib/x86_64-linux-gnu/libc.so.6
cfi=(2) ???
cfn=(3) send
calls=2 0
0 30 2 9000 7000

fn=(2)
0 50
cfn=(4) core::slice::copy
calls=20 0
* 1000

fn=(4)
+3 200
cob=(2)
cfn=(5) __memcpy_avx_unaligned_erms
calls=20 0
+1 800

ob=(2)
fn=(5)
0 800

fn=(3)
0 30 2 9000 7000

ob=(1)
fn=(6) (below main)
0 7
";

fn function(profile: &Profile, name: &str) -> Function {
    let functions: Vec<&Function> = profile.own.keys().filter(|function| function.name.starts_with(name)).collect();
    assert_eq!(functions.len(), 1, "{name}");
    functions[0].clone()
}

#[test]
fn costs_and_callers_are_read() {
    let profile = Profile::parse(PROFILE).unwrap();
    let own = |name: &str| profile.own[&function(&profile, name)];
    assert_eq!(own("spandrel_orb").instructions, 100.0, "without the functions that it calls");
    assert_eq!((own("send").instructions, own("send").kernel_nanos), (30.0, 7000.0));
    assert_eq!(function(&profile, "__memcpy").object, "/lib/x86_64-linux-gnu/libc.so.6");
    assert_eq!((profile.total().instructions, profile.total().kernel_nanos), (1187.0, 7000.0));
    let callers = &profile.callers[&function(&profile, "core::slice")];
    assert_eq!(
        callers.iter().map(|(caller, below)| (caller.name.as_str(), *below)).collect::<Vec<_>>(),
        [("<alloc::vec::Vec<T> as spandrel_cdr::Wire>::encode::h0123456789abcdef", 1000.0)]
    );
    for (text, reason) in [
        ("events: Ir\nfn=(1)\n0 1\n", "line 2 of the profile: the name (1) is not defined"),
        ("events: Ir\nfn=(1) f\n0 x\n", "line 3 of the profile: `x` is no cost"),
        ("events: Ir\nfn=(1) f\n0 1 2\n", "line 3 of the profile: it has more costs than events"),
        ("nonsense\n", "line 1 of the profile: `nonsense` is no line of callgrind"),
        ("", "the profile names no events"),
    ] {
        assert_eq!(Profile::parse(text).unwrap_err(), reason);
    }
}

#[test]
fn functions_of_the_standard_library_work_for_their_callers() {
    let costs = LayerCosts::new(&Profile::parse(PROFILE).unwrap());
    let instructions = |layer| costs.layers.get(&layer).map_or(0.0, |cost| cost.instructions);
    assert_eq!(instructions(Layer::Invocation), 100.0);
    assert_eq!(instructions(Layer::Marshaling), 250.0, "50 of its own and 200 of the function that copies for it");
    assert_eq!(instructions(Layer::Copying), 800.0);
    assert_eq!((instructions(Layer::SystemCalls), costs.layers[&Layer::SystemCalls].kernel_nanos), (30.0, 7000.0));
    let without: Vec<(&str, f64)> =
        costs.without.iter().map(|(function, cost)| (function.name.as_str(), cost.instructions)).collect();
    assert_eq!(without, [("(below main)", 7.0)], "what no layer owns is listed");
}

#[test]
fn samples_belong_to_the_innermost_function_with_a_layer() {
    let text = "3\tsend\tspandrel_ipc::stream::Stream::send\tspandrel_lab::main\tmain\n\
        2\tcore::slice::copy\t<T as spandrel_cdr::Wire>::encode\tspandrel_orb::invoke\tstart_thread\tclone3\n\
        1\t__memcpy_avx_unaligned_erms\tspandrel_cdr::Encoder::octets\tmain\n\
        1\tstd::rt::lang_start\tmain\n\
        1\tclone3\n\
        1\t\n";
    let counts = Samples::parse(text).unwrap().counts();
    assert_eq!(counts.total, 9);
    let layers = [(Layer::SystemCalls, 3), (Layer::Copying, 1), (Layer::Marshaling, 2)];
    assert_eq!(counts.layers, layers.into_iter().collect());
    let without: Vec<(&str, u64)> = counts.without.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(
        without,
        [("(no stack)", 1), ("clone3", 1), ("std::rt::lang_start", 1)],
        "the start of a thread has no layer"
    );
    assert_eq!(counts.functions.values().sum::<u64>(), 9);
    assert_eq!(Samples::parse("1\tmain\nx\tmain\n").unwrap_err(), "line 2 of the samples: `x` is no count");
}

#[test]
fn functions_of_other_orbs_have_the_layers_of_their_classes() {
    let layer = |object: &str, name: &str| {
        let text = format!("events: Ir\nob=(1) /usr/lib/{object}\nfn=(1) {name}\n0 10\n");
        let costs = LayerCosts::new(&Profile::parse(&text).unwrap());
        costs.layers.keys().next().copied()
    };
    for (object, name, expected) in [
        ("libomniORB4.so.2", "omni::giopStream::inputMessage()", Some(Layer::Messages)),
        ("libomniORB4.so.2", "omni::omniOrbPOA::dispatch(omniCallHandle&)", Some(Layer::Demultiplexing)),
        ("libomniORB4.so.2", "omni::omniRemoteIdentity::unmarshalArguments(cdrStream&)", Some(Layer::Marshaling)),
        ("libomniORB4.so.2", "omniOther::action()", None),
        ("libTAO.so.3", "TAO_IIOP_Transport::send(iovec*, int)", Some(Layer::Connections)),
        ("libTAO.so.3", "TAO_GIOP_Message_Base::process_request_message()", Some(Layer::Messages)),
        ("libTAO.so.3", "TAO::Invocation_Adapter::invoke()", Some(Layer::Invocation)),
        ("libTAO_AnyTypeCode.so.3", "TAO::Any_Dual_Impl_T<T>::marshal_value(TAO_OutputCDR&)", Some(Layer::Marshaling)),
        (
            "libTAO_PortableServer.so.3",
            "TAO::Portable_Server::Servant_Upcall::prepare_for_upcall()",
            Some(Layer::Demultiplexing),
        ),
        ("libACE.so.7", "ACE_InputCDR::read_string(char*&)", Some(Layer::Marshaling)),
        ("libACE.so.7", "ACE_Select_Reactor_Impl::find_handler(int)", Some(Layer::Dispatch)),
        ("tao-ttcp", "operator<<(TAO_OutputCDR&, BinStruct const&)", Some(Layer::Marshaling)),
    ] {
        assert_eq!(layer(object, name), expected, "{object}: {name}");
    }
}

#[test]
fn a_shorter_run_is_taken_away() {
    let long = Profile::parse(&PROFILE.replace("0 100\n", "0 175\n")).unwrap();
    let beyond = long.minus(&Profile::parse(PROFILE).unwrap());
    assert_eq!(beyond.total().instructions, 75.0);
    assert_eq!(LayerCosts::new(&beyond).layers[&Layer::Invocation].instructions, 75.0);
}

#[test]
fn system_calls_count_with_their_octets() {
    let trace = Trace::parse(
        "12 sendmsg(7, {msg_name=NULL}, MSG_NOSIGNAL) = 24\n\
         12 read(5,  <unfinished ...>\n\
         13 futex(0x7f, FUTEX_WAKE_PRIVATE, 1) = 1\n\
         12 <... read resumed>\"\"..., 8192) = 100\n\
         12 read(5, 0x7f, 8192) = -1 EAGAIN (Resource temporarily unavailable)\n\
         13 --- SIGCHLD {si_signo=SIGCHLD} ---\n\
         13 +++ exited with 0 +++\n\
         12 exit_group(0) = ?\n",
    );
    let calls = |count, octets| Calls { count, octets };
    assert_eq!(trace.calls(Purpose::Read), calls(2.0, 100.0));
    assert_eq!(trace.calls(Purpose::Write), calls(1.0, 24.0));
    assert_eq!(trace.calls(Purpose::Wait), calls(1.0, 0.0));
    assert_eq!(trace.calls(Purpose::Other), calls(1.0, 0.0));
    assert_eq!(trace.minus(&trace).calls(Purpose::Read), calls(0.0, 0.0));
}

/// The value of a series.
fn value(result: &PointResult, name: &str) -> f64 {
    let series = result.series.iter().find(|series| series.name == name);
    series.unwrap_or_else(|| panic!("{}: no {name}: {:?}", result.point, result.absent)).values[0]
}

#[test]
fn each_layer_has_its_share_of_calls_and_floods() {
    let folder = Folder::open(results()).unwrap();
    let kinds = ["flood-profile", "call-profile"];
    let profiles: Vec<_> = folder.results().filter(|result| kinds.contains(&result.point.kind())).collect();
    assert_eq!(profiles.len(), 3, "{profiles:?}");
    for result in profiles {
        let contender = match result.point.to_string() {
            point if point.starts_with("flood") => "orb",
            point if point.contains("dii") => "orb dii",
            _ => "orb static",
        };
        for side in ["sender", "receiver"] {
            let name = |title: &str| format!("{contender} {side} {title}");
            let value = |title: &str| value(result, &name(title));
            assert!(value("no layer share") <= 5.0, "{}: {side}: {:?}", result.point, result.series);
            let shares: f64 = Layer::ALL.iter().map(|layer| value(&format!("{layer} share"))).sum();
            assert!((shares + value("no layer share") - 100.0).abs() < 0.1, "{shares}");
            let own = if side == "sender" { Layer::Invocation } else { Layer::Demultiplexing };
            for layer in [Layer::SystemCalls, Layer::Marshaling, Layer::Messages, own] {
                assert!(value(layer.name()) > 0.0, "{}: {side} {layer}", result.point);
            }
            assert_eq!(value("dispatch") > 0.0, side == "receiver", "{}", result.point);
            let sampled: f64 = Layer::ALL.iter().map(|layer| value(&format!("sampled {layer} share"))).sum();
            assert!((sampled + value("sampled no layer share") - 100.0).abs() < 0.1, "{sampled}");
            // The short form has some ten samples: one of them is more than 5 %.
            assert!(value("sampled no layer share") <= 10.0, "{}: {side}: {:?}", result.point, result.series);
        }
        // A one-way is one write, of the header and the data.
        assert!(
            (value(result, &format!("{contender} sender writes in a call")) - 1.0).abs() < 0.1,
            "{:?}",
            result.series
        );
        let octets = value(result, &format!("{contender} sender octets of writes"));
        assert!((80.0..1300.0).contains(&octets), "{octets}");
    }
}

#[test]
fn stubs_skeletons_and_marshaling_have_sizes() {
    let folder = Folder::open(results()).unwrap();
    let result = folder.results().find(|result| result.point.kind() == "sizes").unwrap();
    let value = |name: &str| value(result, &format!("fixed_struct {name}"));
    for side in ["stub", "skeleton"] {
        for engine in ["compiled", "interpretive", "adaptive", "dynamic"] {
            let parts = ["code", "helpers", "tables"].map(|part| value(&format!("{engine} {side} {part}")));
            let total = value(&format!("{engine} {side}"));
            assert_eq!(parts.iter().sum::<f64>(), total, "{engine} {side}");
            assert!(parts[0] > 50.0 && total < 100_000.0, "{engine} {side}: {parts:?}");
        }
        // A table and one interpreter for all types take less than straight-line code, and than a list of named values.
        for larger in ["compiled", "dynamic", "adaptive"] {
            assert!(value(&format!("interpretive {side}")) < value(&format!("{larger} {side}")), "{larger} {side}");
        }
    }
    let marshaling = |name: &str| self::value(result, &format!("{name} fixed_struct"));
    assert!(marshaling("write") > 50.0 && marshaling("read") > 50.0);
    assert!(marshaling("write") < value("compiled stub"), "a stub writes values, among other things");
}

#[test]
fn a_rung_of_the_ladder_is_profiled_by_function() {
    let folder = Folder::open(results()).unwrap();
    let result = folder.results().find(|result| result.point.kind() == "ladder-profile").unwrap();
    // 42 structs of five members: more than an instruction for each octet, and far less than the start of the program.
    for direction in ["write", "read"] {
        let instructions = value(result, &format!("original {direction} instructions"));
        assert!((1e3..1e6).contains(&instructions), "{instructions}");
        let begin = format!("original {direction} function ");
        let functions: Vec<_> = result.series.iter().filter(|series| series.name.starts_with(&begin)).collect();
        assert!(functions.iter().any(|series| series.name.contains("::ladder::")), "{functions:?}");
        assert!(functions.iter().map(|series| series.values[0]).sum::<f64>() > 50.0, "{functions:?}");
    }
}

#[test]
fn programs_of_other_projects_send_the_same_floods() {
    let folder = Folder::open(results()).unwrap();
    let result = folder.results().find(|result| result.point.is_at("loopback")).unwrap();
    let octets = |name: &str| {
        let series = result.series.iter().find(|series| series.name == name);
        series.map(|series| series.counted.iter().find(|(counter, _)| counter == "octets received").unwrap().1)
    };
    for rung in ["original", "simple-inlining", "inlined", "precomputed", "split-decoding", "split-encoding"] {
        assert_eq!(octets(&format!("rung-{rung}")), octets("c"), "{rung}: {:?}", result.absent);
    }
    for peer in ["omniorb", "omniorb-original", "omniorb-optimised", "ace", "rpc", "rpc-opaque"] {
        let is_absent = result.absent.iter().any(|(name, _)| name == peer);
        let expected = std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_some();
        assert!(octets(peer) == octets("c") || is_absent && !expected, "{peer}: {:?}", result.absent);
    }
    // No package has TAO: its programs are there only if they were built from its sources.
    let absent = result.absent.iter().find(|(name, _)| name == "tao").map(|(_, reason)| reason.as_str());
    let has_remedy = absent.is_some_and(|reason| reason.ends_with("no sources of TAO: give --tao DIR"));
    assert!(octets("tao") == octets("c") || has_remedy, "{absent:?}");
}
