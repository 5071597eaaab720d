// A control of audio and video streams: `avstreams SENDER RECEIVER CONTROL` binds two devices, starts, stops and starts the
// flow `video`, and expects the exceptions of the standard.
#include <iostream>
#include <stdexcept>
#include <string>

#include "AVStreams.hh"

using namespace AVStreams;

namespace {

void ensure(bool good, const char *claim) {
    if (!good) throw std::runtime_error(claim);
}

template <class Exception, class Call> void raises(Call call, const char *claim) {
    try {
        call();
    } catch (const Exception &) {
        return;
    }
    throw std::runtime_error(claim);
}

flowState state(StreamCtrl_ptr control) {
    CORBA::Any_var value = control->get_property_value("video_state");
    flowState state;
    ensure(value.in() >>= state, "the property is no state");
    return state;
}

void control_stream(MMDevice_ptr sender, MMDevice_ptr receiver, StreamCtrl_ptr control) {
    streamQoS qos;
    flowSpec all, unknown;
    unknown.length(1);
    unknown[0] = CORBA::string_dup("audio");
    raises<noSuchFlow>([&] { control->bind_devs(sender, receiver, qos, unknown); }, "bind_devs of an unknown flow");
    flowSpec flows;
    flows.length(1);
    flows[0] = CORBA::string_dup("video\\in\\\\SFP:1.0\\UDP");
    ensure(control->bind_devs(sender, receiver, qos, flows), "the devices are not bound");
    raises<streamOpFailed>([&] { control->bind_devs(sender, receiver, qos, flows); }, "a stream was bound twice");
    raises<noSuchFlow>([&] { control->start(unknown); }, "start of an unknown flow");
    ensure(state(control) == stopped, "the flow is not stopped at first");
    control->start(all);
    ensure(state(control) == started, "the flow is not started");
    control->stop(all);
    ensure(state(control) == stopped, "the flow is not stopped");

    streamQoS wrong;
    wrong.length(1);
    wrong[0].QoSType = CORBA::string_dup("video");
    wrong[0].QoSParams.length(1);
    wrong[0].QoSParams[0].property_name = CORBA::string_dup("depth");
    wrong[0].QoSParams[0].property_value <<= CORBA::ULong(8);
    raises<QoSRequestFailed>([&] { control->modify_QoS(wrong, all); }, "an unknown parameter was granted");

    StreamEndPoint_var end_point;
    VDev_var device = control->get_related_vdev(receiver, end_point.out());
    ensure(!CORBA::is_nil(device) && !CORBA::is_nil(end_point), "the control does not know the receiver");
    CORBA::Object_var object = end_point->get_fep("video");
    FlowConsumer_var consumer = FlowConsumer::_narrow(object);
    ensure(!CORBA::is_nil(consumer), "the flow end point is no consumer");
    raises<noSuchFlow>([&] { end_point->get_fep("audio"); }, "get_fep of an unknown flow");
    raises<notSupported>([&] { control->get_flow_connection("video"); }, "a flow connection that was not set");
    control->start(all);
    control->destroy(all);
    raises<CORBA::OBJECT_NOT_EXIST>([&] { control->start(all); }, "the control exists after its end");
}

} // namespace

int main(int argc, char **argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        ensure(argc == 4, "usage: avstreams SENDER RECEIVER CONTROL");
        CORBA::Object_var objects[3];
        for (int nth = 0; nth < 3; nth++) objects[nth] = orb->string_to_object(argv[nth + 1]);
        MMDevice_var sender = MMDevice::_narrow(objects[0]), receiver = MMDevice::_narrow(objects[1]);
        StreamCtrl_var control = StreamCtrl::_narrow(objects[2]);
        ensure(!CORBA::is_nil(sender) && !CORBA::is_nil(receiver) && !CORBA::is_nil(control), "an object is of another type");
        control_stream(sender, receiver, control);
        orb->destroy();
    } catch (const CORBA::Exception &raised) {
        std::cerr << raised._name() << "\n";
        return 1;
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
    std::cout << "ok\n";
    return 0;
}
