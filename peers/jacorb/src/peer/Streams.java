package peer;

import static peer.Suite.equal;
import static peer.Suite.expect;
import static peer.Suite.raises;

import org.omg.AVStreams.FPError;
import org.omg.AVStreams.FlowConsumer;
import org.omg.AVStreams.FlowConsumerHelper;
import org.omg.AVStreams.FlowProducerHelper;
import org.omg.AVStreams.MMDevice;
import org.omg.AVStreams.MMDeviceHelper;
import org.omg.AVStreams.MediaControl;
import org.omg.AVStreams.MediaControlHelper;
import org.omg.AVStreams.PropertyException;
import org.omg.AVStreams.QoS;
import org.omg.AVStreams.QoSRequestFailed;
import org.omg.AVStreams.StreamCtrl;
import org.omg.AVStreams.StreamEndPoint;
import org.omg.AVStreams.StreamEndPointHolder;
import org.omg.AVStreams.VDev;
import org.omg.AVStreams.VDevHolder;
import org.omg.AVStreams.flowState;
import org.omg.AVStreams.flowStateHelper;
import org.omg.AVStreams.noSuchFlow;
import org.omg.AVStreams.notSupported;
import org.omg.AVStreams.streamOpDenied;
import org.omg.AVStreams.streamOpFailed;
import org.omg.AVStreams.streamQoSHolder;
import org.omg.CORBA.Any;
import org.omg.CORBA.BooleanHolder;
import org.omg.CORBA.OBJECT_NOT_EXIST;
import org.omg.CORBA.ORB;
import org.omg.CORBA.StringHolder;
import org.omg.CosPropertyService.Property;

/** Controls audio and video streams: the device that sends is the reference of `--call`, the one that receives the word behind it. */
final class Streams {
    private static final String[] ALL = {};
    private static final String[] UNKNOWN = {"audio"};

    private final ORB orb;
    private final MMDevice sender;
    private final MMDevice receiver;

    private Streams(ORB orb, Options options) {
        this.orb = orb;
        sender = MMDeviceHelper.narrow(orb.string_to_object(options.reference));
        receiver = MMDeviceHelper.narrow(orb.string_to_object(options.rest.get(0)));
    }

    static int call(Options options) throws Exception {
        Streams streams = new Streams(new Broker(options).orb, options);
        Suite suite = new Suite(options.only);
        suite.run("streams/bind", streams::bind);
        suite.run("streams/states", streams::states);
        suite.run("streams/quality", streams::quality);
        suite.run("streams/parties", streams::parties);
        suite.run("streams/media", streams::media);
        suite.run("streams/multipoint", streams::multipoint);
        suite.run("streams/exceptions", streams::exceptions);
        return suite.verdict();
    }

    private interface Body {
        void run(StreamCtrl control) throws Exception;
    }

    private static streamQoSHolder noWishes() {
        return new streamQoSHolder(new QoS[] {});
    }

    private streamQoSHolder wish(String name, int value) {
        Any number = orb.create_any();
        number.insert_ulong(value);
        return new streamQoSHolder(new QoS[] {new QoS("video", new Property[] {new Property(name, number)})});
    }

    private StreamCtrl bound(String specification) throws Exception {
        BooleanHolder isMet = new BooleanHolder();
        StreamCtrl control = sender.bind(receiver, noWishes(), isMet, new String[] {specification});
        expect(isMet.value, "the quality of service was not asked for, and is not met");
        return control;
    }

    /** Runs with the control of a stream, and ends the stream. */
    private void with(String specification, Body body) throws Exception {
        StreamCtrl control = bound(specification);
        try {
            body.run(control);
        } finally {
            control.destroy(ALL);
        }
        raises(OBJECT_NOT_EXIST.class, () -> control.start(ALL));
    }

    private static flowState state(StreamCtrl control) throws Exception {
        return flowStateHelper.extract(control.get_property_value("video_state"));
    }

    private void bind() throws Exception {
        raises(noSuchFlow.class, () -> sender.bind(receiver, noWishes(), new BooleanHolder(), UNKNOWN));
        for (String carrier : new String[] {"SFP:1.0\\UDP", "SFP:1.0\\TCP", "RTP\\RTP/UDP"}) {
            with("video\\in\\\\" + carrier, control -> {
                equal(carrier, state(control), flowState.stopped);
                raises(streamOpFailed.class, () -> control.bind_devs(sender, receiver, noWishes(), ALL));
            });
        }
        streamOpFailed failed = raises(streamOpFailed.class, () -> bound("video\\out"));
        expect(failed.reason.contains("other direction"), failed.reason);
    }

    private void states() throws Exception {
        with("video", control -> {
            raises(noSuchFlow.class, () -> control.start(UNKNOWN));
            control.start(ALL);
            equal("after start", state(control), flowState.started);
            raises(noSuchFlow.class, () -> control.stop(UNKNOWN));
            control.stop(new String[] {"video"});
            equal("after stop", state(control), flowState.stopped);
            raises(noSuchFlow.class, () -> control.destroy(UNKNOWN));
            control.destroy(new String[] {"video"});
            equal("after its end", state(control), flowState.dead);
        });
    }

    private void quality() throws Exception {
        with("video", control -> {
            streamQoSHolder possible = wish("frame_rate", 50);
            expect(control.modify_QoS(possible, ALL), "a possible rate is not granted");
            streamQoSHolder great = wish("frame_rate", 5_000);
            expect(!control.modify_QoS(great, ALL), "a rate beyond the greatest is granted");
            equal("the rate", great.value[0].QoSParams[0].property_value.extract_ulong(), 1_000);
            QoSRequestFailed failed = raises(QoSRequestFailed.class, () -> control.modify_QoS(wish("frame_rate", 0), ALL));
            expect(failed.reason.contains("at least 1"), failed.reason);
            raises(QoSRequestFailed.class, () -> control.modify_QoS(wish("depth", 8), ALL));
        });
    }

    private void parties() throws Exception {
        with("video", control -> {
            StreamEndPointHolder end = new StreamEndPointHolder();
            VDev device = control.get_related_vdev(receiver, end);
            expect(device != null && end.value != null, "the control does not know the receiver");
            FlowConsumer consumer = FlowConsumerHelper.narrow(end.value.get_fep("video"));
            expect(consumer.related_sep()._is_equivalent(end.value), "the flow has another end point");
            expect(!consumer._is_a(FlowProducerHelper.id()), "a consumer is a producer");
            raises(noSuchFlow.class, () -> end.value.get_fep("audio"));
            raises(notSupported.class, () -> control.get_flow_connection("video"));
            control.unbind_dev(receiver, ALL);
            raises(streamOpFailed.class, () -> control.get_related_vdev(receiver, new StreamEndPointHolder()));
        });
    }

    private void media() throws Exception {
        VDevHolder device = new VDevHolder();
        StringHolder name = new StringHolder("");
        StreamEndPoint end = sender.create_A(null, device, noWishes(), new BooleanHolder(), name, ALL);
        try {
            org.omg.CORBA.Object related = device.value.get_property_value("Related_MediaCtrl").extract_Object();
            MediaControl media = MediaControlHelper.narrow(related);
            expect(!media._non_existent(), "the control of the medium does not exist");
        } finally {
            sender.destroy(end, name.value);
        }
        raises(OBJECT_NOT_EXIST.class, () -> end.start(ALL));
    }

    private void multipoint() throws Exception {
        StreamCtrl control = sender.bind_mcast(receiver, noWishes(), new BooleanHolder(), new String[] {"video"});
        try {
            control.start(ALL);
            equal("after start", state(control), flowState.started);
            raises(streamOpFailed.class, () -> control.bind_devs(sender, null, noWishes(), ALL));
            control.unbind_dev(receiver, ALL);
            raises(streamOpFailed.class, () -> control.unbind_dev(receiver, ALL));
            expect(control.bind_devs(null, receiver, noWishes(), ALL), "the receiver does not come back");
        } finally {
            control.destroy(ALL);
        }
    }

    private void exceptions() throws Exception {
        VDevHolder device = new VDevHolder();
        StringHolder name = new StringHolder("");
        StreamEndPoint end = sender.create_A(null, device, noWishes(), new BooleanHolder(), name, ALL);
        try {
            raises(noSuchFlow.class, () -> end.start(UNKNOWN));
            raises(noSuchFlow.class, () -> end.disconnect(UNKNOWN));
            raises(streamOpFailed.class, () -> end.connect(null, noWishes(), ALL));
            FPError settings = raises(FPError.class, () -> end.set_FPStatus(ALL, "SFP:1.0", orb.create_any()));
            equal("the flow of the settings", settings.flow_name, "video");
            raises(notSupported.class, () -> end.add_fep(sender));
            raises(QoSRequestFailed.class, () -> end.modify_QoS(wish("depth", 8), ALL));
            Any number = orb.create_any();
            number.insert_ulong(1);
            raises(PropertyException.class, () -> device.value.configure(new Property("", number)));
            raises(notSupported.class, () -> device.value.set_format("audio", "MPEG"));
            raises(streamOpDenied.class,
                () -> sender.create_A(null, new VDevHolder(), noWishes(), new BooleanHolder(), name, ALL));
        } finally {
            sender.destroy(end, name.value);
        }
        raises(notSupported.class, () -> sender.destroy(end, "none"));
        raises(noSuchFlow.class, () -> sender.get_fdev("audio"));
        raises(streamOpFailed.class, () -> sender.add_fdev(null));
    }
}
