//! A naming graph in etcd, which several naming servers share.
//!
//! | key, after the prefix | value |
//! | --- | --- |
//! | `c` and the id of a context, big-endian | its record: the path by which it was made |
//! | `b` and the [key](spandrel_naming::encoding::key) of a binding | its [target](spandrel_naming::encoding::encode_target) |
//!
//! Each change is one transaction of at most three operations, below etcd's limit of 128. Its conditions are
//! compared by etcd, so that changes of other servers cannot come between: a context is destroyed only if it exists
//! and has no binding, and a name is bound only in a context that exists.
//!
//! Reads are linearizable: they follow each change that was acknowledged by any server.
#![forbid(unsafe_code)]

use std::fmt;
use std::future::Future;
use std::time::{Duration, Instant};

use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, Error, GetOptions, KeyValue, SortOrder, SortTarget, Txn, TxnOp,
    TxnOpResponse, TxnResponse,
};
use spandrel::net::sync::Arc;
use spandrel::services::cos_naming::{BindingType, NameComponent};
use spandrel_naming::Store;
use spandrel_naming::encoding::{
    corrupt, decode_path, decode_target, encode_path, encode_target, join, key, split_key, type_of,
};
use spandrel_naming::store::{ContextId, IfBound, StoreError, Target};
use tokio::runtime::Runtime;

/// How often a change is tried again that another server's change has come before.
const MAX_ATTEMPTS: usize = 16;

/// The pause before a request is sent to another member.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The settings of an [`EtcdStore`].
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// The members of the cluster: `http://host:2379`.
    pub members: Vec<String>,
    /// The beginning of all keys.
    pub prefix: String,
    /// The time limit of an operation, with all attempts. Longer than an election of etcd (about a second).
    pub timeout: Duration,
}

/// The reason why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The threads of the client could not be started.
    #[error("cannot start the client of etcd")]
    Runtime(#[from] std::io::Error),
    /// An address is malformed.
    #[error("cannot use the members {members} of etcd")]
    Connect {
        /// The addresses.
        members: String,
        /// The reason.
        #[source]
        cause: Error,
    },
    /// The root context could not be read or made.
    #[error("no member of etcd answered: {members}")]
    Store {
        /// The addresses.
        members: String,
        /// The reason.
        #[source]
        cause: StoreError,
    },
}

/// A naming graph in etcd.
pub struct EtcdStore {
    runtime: Runtime,
    /// A client for each member: a request that fails at one goes to the next.
    clients: Vec<Client>,
    prefix: Vec<u8>,
    timeout: Duration,
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").field("prefix", &String::from_utf8_lossy(&self.prefix)).finish_non_exhaustive()
    }
}

/// The end of an attempt.
enum Failure {
    /// No member can have executed the request.
    NotSent(Error),
    /// A member may have executed the request.
    Unknown(Error),
    /// The time is up.
    TimedOut,
}

impl EtcdStore {
    /// Connects to the members, and makes the root context unless it exists.
    ///
    /// # Errors
    /// Malformed addresses, or a cluster that does not answer in time.
    pub fn open(options: &EtcdOptions) -> Result<Self, OpenError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let members = options.members.join(",");
        let mut clients = Vec::new();
        for member in &options.members {
            let connect = ConnectOptions::new()
                .with_connect_timeout(Duration::from_secs(1))
                .with_timeout(Duration::from_secs(2))
                .with_keep_alive(Duration::from_secs(5), Duration::from_secs(2));
            // It connects at the first request, so that a member which is down now is used later.
            let client = runtime.block_on(Client::connect([member], Some(connect)));
            clients.push(client.map_err(|cause| OpenError::Connect { members: members.clone(), cause })?);
        }
        let store = Self { runtime, clients, prefix: options.prefix.clone().into_bytes(), timeout: options.timeout };
        store.make_root().map_err(|cause| OpenError::Store { members, cause })?;
        Ok(store)
    }

    fn make_root(&self) -> Result<(), StoreError> {
        let key = self.context_key(ContextId::ROOT);
        let txn = Txn::new().when([absent(key.clone())]).and_then([TxnOp::put(key, encode_path(Some("")), None)]);
        self.read(txn).map(drop) // executed twice it has no other effect
    }

    fn context_key(&self, context: ContextId) -> Vec<u8> {
        [&self.prefix, b"c".as_slice(), &context.0.to_be_bytes()].concat()
    }

    fn binding_key(&self, context: ContextId, name: &NameComponent) -> Vec<u8> {
        [&self.prefix, b"b".as_slice(), &key(context, name)].concat()
    }

    /// The begin of the keys of a context's bindings, and their end.
    fn bindings_of(&self, context: ContextId) -> (Vec<u8>, Vec<u8>) {
        let first = [&self.prefix, b"b".as_slice(), &context.0.to_be_bytes()].concat();
        let end = match context.0.checked_add(1) {
            Some(next) => [&self.prefix, b"b".as_slice(), &next.to_be_bytes()].concat(),
            None => [&self.prefix, b"c".as_slice()].concat(),
        };
        (first, end)
    }

    /// Executes a transaction that may be executed twice. A member that does not answer is followed by the next.
    fn read(&self, txn: Txn) -> Result<TxnResponse, StoreError> {
        self.execute(txn, true)
    }

    /// Executes a transaction at most once. It is sent again only if no member can have executed it.
    fn change(&self, txn: Txn) -> Result<TxnResponse, StoreError> {
        self.execute(txn, false)
    }

    fn execute(&self, txn: Txn, may_repeat: bool) -> Result<TxnResponse, StoreError> {
        let deadline = Instant::now() + self.timeout;
        let first = fastrand::usize(..self.clients.len());
        for attempt in 0.. {
            let mut client = self.clients[(first + attempt) % self.clients.len()].kv_client();
            let outcome = self.within(deadline, client.txn(txn.clone()));
            let failure = match outcome {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            let is_over = Instant::now() + RETRY_PAUSE >= deadline;
            match failure {
                Failure::NotSent(_) if !is_over => std::thread::sleep(RETRY_PAUSE),
                Failure::Unknown(_) if may_repeat && !is_over => std::thread::sleep(RETRY_PAUSE),
                Failure::NotSent(error) => return Err(StoreError::Unavailable(Arc::new(error))),
                Failure::Unknown(error) if may_repeat => return Err(StoreError::Unavailable(Arc::new(error))),
                Failure::Unknown(error) => return Err(StoreError::Uncertain(Arc::new(error))),
                Failure::TimedOut => {
                    let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
                    let error: Arc<dyn std::error::Error + Send + Sync> = Arc::new(error);
                    return Err(if may_repeat { StoreError::Unavailable(error) } else { StoreError::Uncertain(error) });
                }
            }
        }
        unreachable!("attempts end at the deadline")
    }

    fn within<T>(&self, deadline: Instant, request: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        self.runtime.block_on(async {
            match tokio::time::timeout_at(deadline.into(), request).await {
                Ok(Ok(response)) => Ok(response),
                Ok(Err(error)) => Err(classify(error)),
                Err(_) => Err(Failure::TimedOut),
            }
        })
    }

    /// The record of a context.
    fn record(&self, context: ContextId) -> Result<KeyValue, StoreError> {
        let response = self.read(Txn::new().and_then([get(self.context_key(context))]))?;
        found(&response, 0).ok_or(StoreError::NoContext(context))
    }

    /// The reason why a change of a binding was not made, from a second look at the context and the binding. `None` if
    /// there is none any more.
    fn refusal(&self, context: ContextId, binding: &[u8], wants_bound: bool) -> Result<Option<StoreError>, StoreError> {
        let look = Txn::new().and_then([get(self.context_key(context)), get(binding.to_vec())]);
        let response = self.read(look)?;
        Ok(match (found(&response, 0), found(&response, 1)) {
            (None, _) => Some(StoreError::NoContext(context)),
            (Some(_), None) if wants_bound => Some(StoreError::NotBound),
            (Some(_), Some(_)) if !wants_bound => Some(StoreError::AlreadyBound),
            _ => None,
        })
    }

    /// Tries a change until its conditions hold, or the reason why they do not is known.
    fn settle(
        &self,
        context: ContextId,
        binding: &[u8],
        wants_bound: bool,
        change: impl Fn() -> Txn,
    ) -> Result<(), StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            if self.change(change())?.succeeded() {
                return Ok(());
            }
            if let Some(refusal) = self.refusal(context, binding, wants_bound)? {
                return Err(refusal);
            }
        }
        Err(contended())
    }
}

/// The error of a change before which other changes come again and again.
fn contended() -> StoreError {
    StoreError::Unavailable(Arc::new(std::io::Error::other("other servers change the name all the time")))
}

/// Decides by an error whether a member may have executed the request.
fn classify(error: Error) -> Failure {
    // These come before a change is proposed to the cluster; a member that lost its leader meanwhile says something
    // else, such as "leader changed".
    const NOT_EXECUTED: [&str; 5] = [
        "tcp connect error",
        "dns error",
        "etcdserver: no leader",
        "etcdserver: too many requests",
        "error trying to connect",
    ];
    match &error {
        Error::GRpcStatus(status) => {
            let text = format!("{status:?}");
            if NOT_EXECUTED.iter().any(|reason| text.contains(reason)) {
                Failure::NotSent(error)
            } else {
                Failure::Unknown(error)
            }
        }
        Error::TransportError(_) => Failure::Unknown(error),
        _ => Failure::NotSent(error),
    }
}

/// The condition that a key exists.
fn present(key: Vec<u8>) -> Compare {
    Compare::version(key, CompareOp::Greater, 0)
}

/// The condition that a key does not exist.
fn absent(key: Vec<u8>) -> Compare {
    Compare::version(key, CompareOp::Equal, 0)
}

fn get(key: Vec<u8>) -> TxnOp {
    TxnOp::get(key, None)
}

/// The value that the operation of this number found.
fn found(response: &TxnResponse, nth: usize) -> Option<KeyValue> {
    match response.op_responses().into_iter().nth(nth) {
        Some(TxnOpResponse::Get(mut found)) => found.take_kvs().into_iter().next(),
        _ => None,
    }
}

impl Store for EtcdStore {
    fn lookup(&self, context: ContextId, name: &NameComponent) -> Result<Target, StoreError> {
        let ops = [get(self.binding_key(context, name)), get(self.context_key(context))];
        let response = self.read(Txn::new().and_then(ops))?;
        match (found(&response, 0), found(&response, 1)) {
            (Some(binding), _) => decode_target(binding.value()),
            (None, Some(_)) => Err(StoreError::NotBound),
            (None, None) => Err(StoreError::NoContext(context)),
        }
    }

    fn bind(
        &self,
        context: ContextId,
        name: &NameComponent,
        target: &Target,
        if_bound: IfBound,
    ) -> Result<(), StoreError> {
        let (binding, parent) = (self.binding_key(context, name), self.context_key(context));
        let value = encode_target(target)?;
        if if_bound == IfBound::Fail {
            return self.settle(context, &binding, false, || {
                Txn::new().when([present(parent.clone()), absent(binding.clone())]).and_then([TxnOp::put(
                    binding.clone(),
                    value.clone(),
                    None,
                )])
            });
        }
        for _ in 0..MAX_ATTEMPTS {
            let response = self.read(Txn::new().and_then([get(binding.clone())]))?;
            let unchanged = match found(&response, 0) {
                None => absent(binding.clone()),
                Some(present) => {
                    let present_type = type_of(present.value())?;
                    if present_type != target.binding_type() {
                        return Err(StoreError::OtherType(present_type));
                    }
                    Compare::mod_revision(binding.clone(), CompareOp::Equal, present.mod_revision())
                }
            };
            let txn = Txn::new().when([present(parent.clone()), unchanged]).and_then([TxnOp::put(
                binding.clone(),
                value.clone(),
                None,
            )]);
            if self.change(txn)?.succeeded() {
                return Ok(());
            }
            self.record(context)?;
        }
        Err(contended())
    }

    fn unbind(&self, context: ContextId, name: &NameComponent) -> Result<(), StoreError> {
        let (binding, parent) = (self.binding_key(context, name), self.context_key(context));
        self.settle(context, &binding, true, || {
            Txn::new()
                .when([present(parent.clone()), present(binding.clone())])
                .and_then([TxnOp::delete(binding.clone(), None)])
        })
    }

    fn unbind_target(&self, context: ContextId, name: &NameComponent, target: &Target) -> Result<(), StoreError> {
        let binding = self.binding_key(context, name);
        let unchanged = Compare::value(binding.clone(), CompareOp::Equal, encode_target(target)?);
        let txn = Txn::new().when([unchanged]).and_then([TxnOp::delete(binding, None)]);
        if self.change(txn)?.succeeded() {
            return Ok(());
        }
        self.record(context)?;
        Err(StoreError::NotBound)
    }

    fn new_context(&self) -> Result<ContextId, StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            let created = ContextId(fastrand::u64(1..));
            let key = self.context_key(created);
            let txn = Txn::new().when([absent(key.clone())]).and_then([TxnOp::put(key, encode_path(None), None)]);
            if self.change(txn)?.succeeded() {
                return Ok(created);
            }
        }
        Err(contended())
    }

    fn bind_new_context(&self, context: ContextId, name: &NameComponent) -> Result<ContextId, StoreError> {
        // The path of a context never changes.
        let path = decode_path(self.record(context)?.value())?.map(|parent| join(&parent, name));
        let (binding, parent) = (self.binding_key(context, name), self.context_key(context));
        let created = ContextId(fastrand::u64(1..));
        let (own, target) = (self.context_key(created), encode_target(&Target::Context(created))?);
        let record = encode_path(path.as_deref());
        self.settle(context, &binding, false, || {
            Txn::new().when([present(parent.clone()), absent(binding.clone()), absent(own.clone())]).and_then([
                TxnOp::put(own.clone(), record.clone(), None),
                TxnOp::put(binding.clone(), target.clone(), None),
            ])
        })?;
        Ok(created)
    }

    fn destroy(&self, context: ContextId) -> Result<(), StoreError> {
        let own = self.context_key(context);
        let (first, end) = self.bindings_of(context);
        for _ in 0..MAX_ATTEMPTS {
            let one = GetOptions::new().with_range(end.clone()).with_limit(1).with_keys_only();
            let look = Txn::new().and_then([get(own.clone()), TxnOp::get(first.clone(), Some(one))]);
            let response = self.read(look)?;
            if found(&response, 0).is_none() {
                return Err(StoreError::NoContext(context));
            }
            if found(&response, 1).is_some() {
                return Err(StoreError::NotEmpty(context));
            }
            if context == ContextId::ROOT {
                return Err(StoreError::Root);
            }
            // The second condition holds for a range without keys only.
            let txn = Txn::new()
                .when([present(own.clone()), absent(first.clone()).with_range(end.clone())])
                .and_then([TxnOp::delete(own.clone(), None)]);
            if self.change(txn)?.succeeded() {
                return Ok(());
            }
        }
        Err(contended())
    }

    fn list(
        &self,
        context: ContextId,
        after: Option<&NameComponent>,
        limit: usize,
    ) -> Result<Vec<(NameComponent, BindingType)>, StoreError> {
        let (mut first, end) = self.bindings_of(context);
        if let Some(after) = after {
            first = [self.binding_key(context, after), vec![0]].concat(); // the next key
        }
        let page = GetOptions::new()
            .with_range(end)
            .with_sort(SortTarget::Key, SortOrder::Ascend)
            .with_limit(i64::try_from(limit).unwrap_or(i64::MAX));
        let response =
            self.read(Txn::new().and_then([get(self.context_key(context)), TxnOp::get(first, Some(page))]))?;
        if found(&response, 0).is_none() {
            return Err(StoreError::NoContext(context));
        }
        let Some(TxnOpResponse::Get(bindings)) = response.op_responses().into_iter().nth(1) else {
            return Err(corrupt("an answer of etcd"));
        };
        let bound = |binding: &KeyValue| {
            let key = binding.key().get(self.prefix.len() + 1..).unwrap_or_default();
            let (_, name) = split_key(key).ok_or_else(|| corrupt("a key of a binding"))?;
            Ok((name, type_of(binding.value())?))
        };
        bindings.kvs().iter().map(bound).collect()
    }

    fn path(&self, context: ContextId) -> Result<Option<String>, StoreError> {
        decode_path(self.record(context)?.value())
    }
}
