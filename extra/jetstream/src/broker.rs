//! The broker: streams of channels, records of connections, and durable consumers.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_nats::ConnectOptions;
use async_nats::jetstream::consumer::pull::Config as ConsumerConfig;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::kv;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{
    Config as StreamConfig, DiscardPolicy, LastRawMessageErrorKind, RetentionPolicy, StorageType,
};
use async_nats::jetstream::{Context, ErrorCode};
use futures_util::{StreamExt as _, TryStreamExt as _};
use spandrel::cdr::{ByteOrder, CharSet, OctetForm, WcharSet};
use spandrel::{CompletionStatus, SystemException};
use tokio::runtime::{Handle, Runtime};

/// The time after which the broker gives an event to another server, unless the one that has it reports progress.
pub const ACK_WAIT: Duration = Duration::from_secs(2);

/// The time limit of one request to the broker, after which it is made again.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(2);
/// The pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// The header of marks of deleted records.
const KV_OPERATION: &str = "KV-Operation";

/// The settings of the connection with a broker, and of the streams of channels.
#[derive(Clone, Debug)]
pub struct BrokerOptions {
    /// The nodes of the broker: `nats://host:4222`.
    pub nodes: Vec<String>,
    /// A file with the credentials of the user.
    pub credentials: Option<PathBuf>,
    /// The name of the bucket, with which the names of streams and subjects begin.
    pub prefix: String,
    /// The nodes that store each event.
    pub replicas: usize,
    /// The events that may wait for one consumer.
    pub queue: u64,
    /// The time limit of an operation, with all attempts. Longer than an election of the broker (up to nine seconds).
    pub timeout: Duration,
}

/// The reason why a broker cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The threads of the client could not be started.
    #[error("cannot start the client of the broker")]
    Runtime(#[source] std::io::Error),
    /// The file with the credentials cannot be read.
    #[error("cannot read the credentials {}", file.display())]
    Credentials {
        /// The file that `--credentials` names.
        file: PathBuf,
        /// The reason.
        #[source]
        cause: std::io::Error,
    },
    /// No node answered in time, or JetStream is off.
    #[error("no node of the broker answered: {nodes}")]
    Unavailable {
        /// The addresses of all nodes that were tried.
        nodes: String,
        /// The reason.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A record of the bucket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Record {
    Value(String),
    /// The mark of a record that was deleted.
    Deleted,
}

/// A broker, and the threads of its client.
pub(crate) struct Broker {
    runtime: Option<Runtime>,
    handle: Handle,
    pub(crate) context: Context,
    pub(crate) bucket: kv::Store,
    pub(crate) options: BrokerOptions,
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The form of events and records: the same on each machine, with all characters.
pub(crate) fn form() -> OctetForm<'static> {
    OctetForm::bare(ByteOrder::Little).code_sets(CharSet::Utf8, WcharSet::Utf16)
}

/// The exception of a broker that does not answer. A change may have been made.
pub(crate) fn unavailable(error: &dyn fmt::Display) -> SystemException {
    let detail = format!("the broker does not answer: {error}");
    SystemException::transient(0, CompletionStatus::Maybe).with_detail(detail)
}

impl Broker {
    /// Connects to the nodes, and creates the bucket unless it exists.
    ///
    /// # Errors
    /// Nodes that do not answer within the time limit.
    pub(crate) fn open(options: BrokerOptions) -> Result<Self, BrokerError> {
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = threads.map_err(BrokerError::Runtime)?;
        let deadline = Instant::now() + options.timeout;
        let (context, bucket) = runtime.block_on(async {
            loop {
                match open_bucket(&options).await {
                    Ok(opened) => return Ok(opened),
                    Err(error @ BrokerError::Credentials { .. }) => return Err(error),
                    Err(error) if Instant::now() >= deadline => return Err(error),
                    Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
                }
            }
        })?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle, context, bucket, options })
    }

    /// Starts a task in the threads of the client.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
        self.handle.spawn(task)
    }

    /// Waits in this thread, which is none of the client's.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.handle.block_on(future)
    }

    pub(crate) fn stream_name(&self, channel: &str) -> String {
        format!("{}-{channel}", self.options.prefix)
    }

    fn subject(&self, channel: &str) -> String {
        format!("{}.{channel}", self.options.prefix)
    }

    /// Makes a request until it succeeds or the time is over. It may be made more than once.
    pub(crate) async fn repeat<T, E: fmt::Display, F: Future<Output = Result<T, E>>>(
        &self,
        request: impl Fn() -> F,
    ) -> Result<T, SystemException> {
        let deadline = Instant::now() + self.options.timeout;
        loop {
            let error = match tokio::time::timeout(ATTEMPT, request()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) => unavailable(&error),
                Err(late) => unavailable(&late),
            };
            if Instant::now() + RETRY_PAUSE >= deadline {
                return Err(error);
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Stores an event. When this returns, a majority of the replicas has it.
    ///
    /// # Errors
    /// TRANSIENT if the broker does not answer in time; NO_RESOURCES if the channel is full; IMP_LIMIT for an event that the
    /// broker does not take; OBJECT_NOT_EXIST once the channel is destroyed.
    pub(crate) async fn publish(
        &self,
        channel: &str,
        octets: Vec<u8>,
        exists: impl Fn() -> bool,
    ) -> Result<(), SystemException> {
        let (subject, id) = (self.subject(channel), format!("{:032x}", fastrand::u128(..)));
        let payload: async_nats::jetstream::message::PublishMessage =
            PublishMessage::build().payload(octets.into()).message_id(id);
        let deadline = Instant::now() + self.options.timeout;
        loop {
            let sent = async {
                let acknowledgement = self.context.send_publish(subject.clone(), payload.clone()).await?;
                acknowledgement.await
            };
            let error = match tokio::time::timeout(ATTEMPT, sent).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => match error.kind() {
                    PublishErrorKind::MaxPayloadExceeded => {
                        return Err(SystemException::imp_limit(0, CompletionStatus::No).with_detail(error.to_string()));
                    }
                    PublishErrorKind::Other if is_full(&error) => {
                        return Err(SystemException::no_resources(0, CompletionStatus::No)
                            .with_detail("the channel is full: a consumer does not take its events"));
                    }
                    _ => unavailable(&error),
                },
                Err(late) => unavailable(&late),
            };
            if !exists() {
                return Err(SystemException::object_not_exist(0, CompletionStatus::No));
            }
            if Instant::now() + RETRY_PAUSE >= deadline {
                return Err(error);
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Creates the stream of a channel unless it exists.
    pub(crate) async fn create_stream(&self, channel: &str) -> Result<(), SystemException> {
        let config = StreamConfig {
            name: self.stream_name(channel),
            subjects: vec![self.subject(channel)],
            retention: RetentionPolicy::Interest,
            storage: StorageType::File,
            discard: DiscardPolicy::New,
            // Consumers discard their oldest events before; this bounds the disk if no server runs that would do so.
            max_messages: i64::try_from(self.options.queue.saturating_mul(2)).unwrap_or(i64::MAX),
            num_replicas: self.options.replicas,
            ..StreamConfig::default()
        };
        self.repeat(|| self.context.get_or_create_stream(config.clone())).await.map(drop)
    }

    pub(crate) async fn delete_stream(&self, channel: &str) -> Result<(), SystemException> {
        let name = self.stream_name(channel);
        let delete = || async {
            match self.context.delete_stream(&name).await {
                Ok(_) => Ok(()),
                Err(error) if error.to_string().contains("not found") => Ok(()),
                Err(error) => Err(error),
            }
        };
        self.repeat(delete).await
    }

    /// The number of the next event of a channel.
    pub(crate) async fn next_sequence(&self, channel: &str) -> Result<u64, SystemException> {
        let name = self.stream_name(channel);
        let stream = self.repeat(|| self.context.get_stream(&name)).await?;
        Ok(stream.cached_info().state.last_sequence + 1)
    }

    /// The durable consumer of a proxy, which is created unless it exists. It gets the events from this number on, one at
    /// a time and in their order, which the death of a node may break.
    ///
    /// The policy is none that begins with new events: a node that has lost the state of the consumer in its death would begin
    /// there, and events would be lost. From a number it offers events again, which the stream has kept.
    pub(crate) async fn consumer(
        &self,
        channel: &str,
        proxy: &str,
        start_sequence: u64,
    ) -> Result<PullConsumer, SystemException> {
        let config = ConsumerConfig {
            durable_name: Some(proxy.to_owned()),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence },
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: 1,
            ..ConsumerConfig::default()
        };
        let name = self.stream_name(channel);
        self.repeat(|| async {
            let stream = self.context.get_stream_no_info(&name).await.map_err(|error| error.to_string())?;
            stream.get_or_create_consumer(proxy, config.clone()).await.map_err(|error| error.to_string())
        })
        .await
    }

    /// The durable consumer of a proxy, which exists.
    pub(crate) async fn existing_consumer(&self, channel: &str, proxy: &str) -> Result<PullConsumer, SystemException> {
        let stream = self.stream_name(channel);
        self.repeat(|| self.context.get_consumer_from_stream(proxy, &stream)).await
    }

    pub(crate) async fn delete_consumer(&self, channel: &str, proxy: &str) {
        let stream = self.stream_name(channel);
        // Absent if another server was faster; with its stream if the channel is destroyed.
        _ = tokio::time::timeout(ATTEMPT, self.context.delete_consumer_from_stream(proxy, &stream)).await;
    }

    /// The events that wait for the durable consumers of a channel, by their names.
    pub(crate) async fn queues(&self, channel: &str) -> Result<BTreeMap<String, u64>, SystemException> {
        let name = self.stream_name(channel);
        self.repeat(|| async {
            let stream = self.context.get_stream_no_info(&name).await.map_err(|error| error.to_string())?;
            let consumers = stream.consumers().map(|info| {
                info.map(|info| (info.name, info.num_pending + u64::try_from(info.num_ack_pending).unwrap_or(u64::MAX)))
            });
            consumers.try_collect().await.map_err(|error| error.to_string())
        })
        .await
    }

    /// The record of a key, as the leader of the bucket has it.
    pub(crate) async fn record(&self, key: &str) -> Result<Option<Record>, SystemException> {
        let subject = format!("{}{key}", self.bucket.prefix);
        self.repeat(|| async {
            match self.bucket.stream.get_last_raw_message_by_subject(&subject).await {
                Ok(message) if message.headers.get(KV_OPERATION).is_some() => Ok(Some(Record::Deleted)),
                Ok(message) => Ok(Some(Record::Value(String::from_utf8_lossy(&message.payload).into_owned()))),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// Writes a record if the key has no value. Returns the record that is in the way: a value, or the mark of a deleted
    /// one unless `over_mark`.
    pub(crate) async fn create_record(
        &self,
        key: &str,
        value: &str,
        over_mark: bool,
    ) -> Result<Option<Record>, SystemException> {
        match self.record(key).await? {
            Some(Record::Deleted) if over_mark => {}
            Some(record) => return Ok(Some(record)),
            None => {}
        }
        let written = || async {
            let error = match self.bucket.create(key, value.to_owned().into()).await {
                Ok(_) => return Ok(None),
                Err(error) => error.to_string(),
            };
            match self.record(key).await {
                // Its own write, whose acknowledgement was lost.
                Ok(Some(Record::Value(current))) if current == value => Ok(None),
                Ok(Some(Record::Value(current))) => Ok(Some(Record::Value(current))),
                _ => Err(error),
            }
        };
        self.repeat(written).await
    }

    pub(crate) async fn delete_record(&self, key: &str) -> Result<(), SystemException> {
        self.repeat(|| self.bucket.delete(key)).await
    }

    /// Removes the marks of records that were deleted long ago, by their keys.
    pub(crate) async fn remove_marks(&self, marks: &BTreeMap<String, Instant>, age: Duration) -> Vec<String> {
        let mut removed = Vec::new();
        for (key, since) in marks {
            if since.elapsed() < age {
                continue;
            }
            let subject = format!("{}{key}", self.bucket.prefix);
            if self.bucket.stream.purge().filter(subject).await.is_ok() {
                removed.push(key.clone());
            }
        }
        removed
    }
}

/// Whether the stream refused the event for its bound.
fn is_full(error: &async_nats::jetstream::context::PublishError) -> bool {
    let source = std::error::Error::source(error);
    let cause = source.and_then(|source| source.downcast_ref::<async_nats::jetstream::Error>());
    cause.is_some_and(|cause| cause.error_code() == ErrorCode::STREAM_STORE_FAILED)
}

async fn open_bucket(options: &BrokerOptions) -> Result<(Context, kv::Store), BrokerError> {
    let failed = |cause: Box<dyn std::error::Error + Send + Sync>| BrokerError::Unavailable {
        nodes: options.nodes.join(","),
        cause,
    };
    let mut connect = ConnectOptions::new()
        .name("spandrel-event-jetstream")
        .connection_timeout(ATTEMPT)
        .ping_interval(Duration::from_secs(2))
        .reconnect_delay_callback(|_| RETRY_PAUSE);
    if let Some(file) = &options.credentials {
        let credentials = |cause| BrokerError::Credentials { file: file.clone(), cause };
        let text = std::fs::read_to_string(file).map_err(credentials)?;
        connect = connect.credentials(&text).map_err(credentials)?;
    }
    let client = connect.connect(options.nodes.clone()).await.map_err(|error| failed(error.into()))?;
    let mut context = async_nats::jetstream::new(client);
    context.set_timeout(ATTEMPT);
    // The stream of a bucket with one value for each key, whose leader answers reads.
    let bucket = StreamConfig {
        name: format!("KV_{}", options.prefix),
        subjects: vec![format!("$KV.{}.>", options.prefix)],
        max_messages_per_subject: 1,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        storage: StorageType::File,
        num_replicas: options.replicas,
        ..StreamConfig::default()
    };
    context.get_or_create_stream(bucket).await.map_err(|error| failed(error.into()))?;
    let bucket = context.get_key_value(&options.prefix).await.map_err(|error| failed(error.into()))?;
    Ok((context, bucket))
}
