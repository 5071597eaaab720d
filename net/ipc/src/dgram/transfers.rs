//! The transfer methods of the datagram types, the same for each: macros over types with a field `socket` (a
//! [`DgramSocket`](super::DgramSocket)).

/// Receiving by an unconnected endpoint, in every form.
macro_rules! unconnected_receives {
    ($type:ty, $addr:ty) => {
        /// The methods that receive.
        impl $type {
            /// Receives one datagram into `buffer` and returns it with its sender; waits while none is
            /// queued. One system call.
            ///
            /// # Errors
            /// Any error of the operating system; a receive timeout satisfies
            /// [`is_timeout`](crate::is_timeout).
            #[inline]
            pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(Received, $addr)> {
                self.receive(Room::One(buffer), Wait::Configured)
            }

            /// Receives one datagram into `slices`, in order (at most 1,024 of them are used), and returns it
            /// with its sender. One system call.
            ///
            /// # Errors
            /// As [`recv_from`](Self::recv_from).
            #[inline]
            pub fn recv_from_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<(Received, $addr)> {
                self.receive(Room::Several(slices), Wait::Configured)
            }

            /// Like [`recv_from`](Self::recv_from), but never waits.
            ///
            /// # Errors
            /// [`io::ErrorKind::WouldBlock`] when nothing is queued; those of the operating system.
            #[inline]
            pub fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(Received, $addr)> {
                self.receive(Room::One(buffer), Wait::Never)
            }

            /// Like [`recv_from_v`](Self::recv_from_v), but never waits.
            ///
            /// # Errors
            /// As [`try_recv_from`](Self::try_recv_from).
            #[inline]
            pub fn try_recv_from_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<(Received, $addr)> {
                self.receive(Room::Several(slices), Wait::Never)
            }

            /// Like [`recv_from`](Self::recv_from), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// [`io::ErrorKind::TimedOut`] on a timeout; those of the operating system.
            pub fn recv_from_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<(Received, $addr)> {
                self.receive(Room::One(buffer), Wait::For(timeout))
            }

            /// Like [`recv_from_v`](Self::recv_from_v), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// As [`recv_from_within`](Self::recv_from_within).
            pub fn recv_from_v_within(
                &self,
                slices: &mut [IoSliceMut<'_>],
                timeout: Duration,
            ) -> io::Result<(Received, $addr)> {
                self.receive(Room::Several(slices), Wait::For(timeout))
            }

            /// Replaces the contents of `batch` by received datagrams, and returns their number. Waits for
            /// the first, then takes all that are queued.
            ///
            /// # Errors
            /// As [`recv_from`](Self::recv_from); the batch is empty then.
            pub fn recv_batch(&self, batch: &mut Batch<$addr>) -> io::Result<usize> {
                self.socket.recv_batch(batch, Wait::Configured)
            }

            /// Like [`recv_batch`](Self::recv_batch), but never waits.
            ///
            /// # Errors
            /// As [`try_recv_from`](Self::try_recv_from).
            pub fn try_recv_batch(&self, batch: &mut Batch<$addr>) -> io::Result<usize> {
                self.socket.recv_batch(batch, Wait::Never)
            }

            /// Like [`recv_batch`](Self::recv_batch), but waits no longer than `timeout` for the first.
            ///
            /// # Errors
            /// As [`recv_from_within`](Self::recv_from_within).
            pub fn recv_batch_within(&self, batch: &mut Batch<$addr>, timeout: Duration) -> io::Result<usize> {
                self.socket.recv_batch(batch, Wait::For(timeout))
            }

            #[inline]
            fn receive(&self, room: Room<'_, '_>, wait: Wait) -> io::Result<(Received, $addr)> {
                let (received, from) = self.socket.recv_from(room, wait)?;
                Ok((received, <$addr>::decode(from.as_ref())?))
            }
        }
    };
}

/// Sending by an unconnected endpoint, in every form, and the trait [`Unconnected`](super::Unconnected).
macro_rules! unconnected_sends {
    ($type:ty, $addr:ty) => {
        /// Sending. A datagram is sent whole or not at all.
        impl $type {
            /// Sends `data` to `to` as one datagram; waits while it cannot be sent. One system call.
            ///
            /// # Errors
            /// [`SendError`], whose variants have the meaning of each.
            #[inline]
            pub fn send_to(&self, data: &[u8], to: &$addr) -> Result<(), SendError> {
                self.socket.send(Data::One(data), Some(&to.encode()?), Wait::Configured)
            }

            /// Sends the octets of `slices` (at most 1,024 of them), in order, to `to` as one datagram. One
            /// system call.
            ///
            /// # Errors
            /// As [`send_to`](Self::send_to).
            #[inline]
            pub fn send_to_v(&self, slices: &[IoSlice<'_>], to: &$addr) -> Result<(), SendError> {
                self.socket.send(Data::Several(slices), Some(&to.encode()?), Wait::Configured)
            }

            /// Like [`send_to`](Self::send_to), but never waits.
            ///
            /// # Errors
            /// As [`send_to`](Self::send_to), with [`io::ErrorKind::WouldBlock`] when it would have to.
            #[inline]
            pub fn try_send_to(&self, data: &[u8], to: &$addr) -> Result<(), SendError> {
                self.socket.send(Data::One(data), Some(&to.encode()?), Wait::Never)
            }

            /// Like [`send_to_v`](Self::send_to_v), but never waits.
            ///
            /// # Errors
            /// As [`try_send_to`](Self::try_send_to).
            #[inline]
            pub fn try_send_to_v(&self, slices: &[IoSlice<'_>], to: &$addr) -> Result<(), SendError> {
                self.socket.send(Data::Several(slices), Some(&to.encode()?), Wait::Never)
            }

            /// Like [`send_to`](Self::send_to), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// As [`send_to`](Self::send_to), with [`io::ErrorKind::TimedOut`] on a timeout.
            pub fn send_to_within(&self, data: &[u8], to: &$addr, timeout: Duration) -> Result<(), SendError> {
                self.socket.send(Data::One(data), Some(&to.encode()?), Wait::For(timeout))
            }

            /// Like [`send_to_v`](Self::send_to_v), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// As [`send_to_within`](Self::send_to_within).
            pub fn send_to_v_within(
                &self,
                slices: &[IoSlice<'_>],
                to: &$addr,
                timeout: Duration,
            ) -> Result<(), SendError> {
                self.socket.send(Data::Several(slices), Some(&to.encode()?), Wait::For(timeout))
            }

            /// Sends the datagrams of `batch`, removes those sent and returns their number. It is smaller
            /// than the batch if one could not be sent; the next call returns the reason. One system call
            /// (Linux).
            ///
            /// # Errors
            /// [`SendError`] of the first, if none was sent. It stays in the batch.
            pub fn send_batch(&self, batch: &mut Batch<$addr>) -> Result<usize, SendError> {
                self.socket.send_batch(batch, Wait::Configured)
            }

            /// Like [`send_batch`](Self::send_batch), but never waits.
            ///
            /// # Errors
            /// As [`try_send_to`](Self::try_send_to).
            pub fn try_send_batch(&self, batch: &mut Batch<$addr>) -> Result<usize, SendError> {
                self.socket.send_batch(batch, Wait::Never)
            }

            /// Like [`send_batch`](Self::send_batch), but waits no longer than `timeout` for the first.
            ///
            /// # Errors
            /// As [`send_to_within`](Self::send_to_within).
            pub fn send_batch_within(&self, batch: &mut Batch<$addr>, timeout: Duration) -> Result<usize, SendError> {
                self.socket.send_batch(batch, Wait::For(timeout))
            }
        }

        impl Unconnected for $type {
            type Addr = $addr;
            #[inline]
            fn send_to(&self, data: &[u8], to: &$addr) -> Result<(), SendError> {
                <$type>::send_to(self, data, to)
            }
            #[inline]
            fn try_send_to(&self, data: &[u8], to: &$addr) -> Result<(), SendError> {
                <$type>::try_send_to(self, data, to)
            }
            fn send_to_within(&self, data: &[u8], to: &$addr, timeout: Duration) -> Result<(), SendError> {
                <$type>::send_to_within(self, data, to, timeout)
            }
            #[inline]
            fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(Received, $addr)> {
                <$type>::recv_from(self, buffer)
            }
            #[inline]
            fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(Received, $addr)> {
                <$type>::try_recv_from(self, buffer)
            }
            fn recv_from_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<(Received, $addr)> {
                <$type>::recv_from_within(self, buffer, timeout)
            }
            fn send_batch(&self, batch: &mut Batch<$addr>) -> Result<usize, SendError> {
                <$type>::send_batch(self, batch)
            }
            fn recv_batch(&self, batch: &mut Batch<$addr>) -> io::Result<usize> {
                <$type>::recv_batch(self, batch)
            }
            fn local_addr(&self) -> io::Result<$addr> {
                <$type>::local_addr(self)
            }
        }
    };
}

/// Sending and receiving by a connected endpoint, in every form, and the trait
/// [`Connected`](super::Connected).
macro_rules! connected_transfers {
    ($type:ty, $addr:ty) => {
        /// Sending. A datagram is sent whole or not at all.
        impl $type {
            /// Sends `data` to the peer as one datagram; waits while it cannot be sent. One system call.
            ///
            /// # Errors
            /// [`SendError`], whose variants have the meaning of each.
            #[inline]
            pub fn send(&self, data: &[u8]) -> Result<(), SendError> {
                self.socket.send(Data::One(data), None, Wait::Configured)
            }

            /// Sends the octets of `slices` (at most 1,024 of them), in order, to the peer as one datagram.
            /// One system call.
            ///
            /// # Errors
            /// As [`send`](Self::send).
            #[inline]
            pub fn send_v(&self, slices: &[IoSlice<'_>]) -> Result<(), SendError> {
                self.socket.send(Data::Several(slices), None, Wait::Configured)
            }

            /// Like [`send`](Self::send), but never waits.
            ///
            /// # Errors
            /// As [`send`](Self::send), with [`io::ErrorKind::WouldBlock`] when it would have to.
            #[inline]
            pub fn try_send(&self, data: &[u8]) -> Result<(), SendError> {
                self.socket.send(Data::One(data), None, Wait::Never)
            }

            /// Like [`send_v`](Self::send_v), but never waits.
            ///
            /// # Errors
            /// As [`try_send`](Self::try_send).
            #[inline]
            pub fn try_send_v(&self, slices: &[IoSlice<'_>]) -> Result<(), SendError> {
                self.socket.send(Data::Several(slices), None, Wait::Never)
            }

            /// Like [`send`](Self::send), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// As [`send`](Self::send), with [`io::ErrorKind::TimedOut`] on a timeout.
            pub fn send_within(&self, data: &[u8], timeout: Duration) -> Result<(), SendError> {
                self.socket.send(Data::One(data), None, Wait::For(timeout))
            }

            /// Like [`send_v`](Self::send_v), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// As [`send_within`](Self::send_within).
            pub fn send_v_within(&self, slices: &[IoSlice<'_>], timeout: Duration) -> Result<(), SendError> {
                self.socket.send(Data::Several(slices), None, Wait::For(timeout))
            }

            /// Sends the datagrams of `batch`, removes those sent and returns their number. It is smaller
            /// than the batch if one could not be sent; the next call returns the reason. One system call
            /// (Linux).
            ///
            /// # Errors
            /// [`SendError`] of the first, if none was sent. It stays in the batch.
            pub fn send_batch(&self, batch: &mut Batch) -> Result<usize, SendError> {
                self.socket.send_batch(batch, Wait::Configured)
            }

            /// Like [`send_batch`](Self::send_batch), but never waits.
            ///
            /// # Errors
            /// As [`try_send`](Self::try_send).
            pub fn try_send_batch(&self, batch: &mut Batch) -> Result<usize, SendError> {
                self.socket.send_batch(batch, Wait::Never)
            }

            /// Like [`send_batch`](Self::send_batch), but waits no longer than `timeout` for the first.
            ///
            /// # Errors
            /// As [`send_within`](Self::send_within).
            pub fn send_batch_within(&self, batch: &mut Batch, timeout: Duration) -> Result<usize, SendError> {
                self.socket.send_batch(batch, Wait::For(timeout))
            }
        }

        /// The methods that receive.
        impl $type {
            /// Receives one datagram into `buffer`; waits while none is queued. One system call.
            ///
            /// # Errors
            /// [`io::ErrorKind::ConnectionRefused`] when no endpoint received an earlier datagram; a receive
            /// timeout satisfies [`is_timeout`](crate::is_timeout); others of the operating system.
            #[inline]
            pub fn recv(&self, buffer: &mut [u8]) -> io::Result<Received> {
                self.socket.recv(Room::One(buffer), Wait::Configured)
            }

            /// Receives one datagram into `slices`, in order (at most 1,024 of them are used). One system
            /// call.
            ///
            /// # Errors
            /// As [`recv`](Self::recv).
            #[inline]
            pub fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<Received> {
                self.socket.recv(Room::Several(slices), Wait::Configured)
            }

            /// Like [`recv`](Self::recv), but never waits.
            ///
            /// # Errors
            /// As [`recv`](Self::recv), with [`io::ErrorKind::WouldBlock`] when nothing is queued.
            #[inline]
            pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<Received> {
                self.socket.recv(Room::One(buffer), Wait::Never)
            }

            /// Like [`recv_v`](Self::recv_v), but never waits.
            ///
            /// # Errors
            /// As [`try_recv`](Self::try_recv).
            #[inline]
            pub fn try_recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<Received> {
                self.socket.recv(Room::Several(slices), Wait::Never)
            }

            /// Like [`recv`](Self::recv), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// As [`recv`](Self::recv), with [`io::ErrorKind::TimedOut`] on a timeout.
            pub fn recv_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<Received> {
                self.socket.recv(Room::One(buffer), Wait::For(timeout))
            }

            /// Like [`recv_v`](Self::recv_v), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// As [`recv_within`](Self::recv_within).
            pub fn recv_v_within(&self, slices: &mut [IoSliceMut<'_>], timeout: Duration) -> io::Result<Received> {
                self.socket.recv(Room::Several(slices), Wait::For(timeout))
            }

            /// Replaces the contents of `batch` by received datagrams, and returns their number. Waits for
            /// the first, then takes all that are queued.
            ///
            /// # Errors
            /// As [`recv`](Self::recv); the batch is empty then.
            pub fn recv_batch(&self, batch: &mut Batch) -> io::Result<usize> {
                self.socket.recv_batch(batch, Wait::Configured)
            }

            /// Like [`recv_batch`](Self::recv_batch), but never waits.
            ///
            /// # Errors
            /// As [`try_recv`](Self::try_recv).
            pub fn try_recv_batch(&self, batch: &mut Batch) -> io::Result<usize> {
                self.socket.recv_batch(batch, Wait::Never)
            }

            /// Like [`recv_batch`](Self::recv_batch), but waits no longer than `timeout` for the first.
            ///
            /// # Errors
            /// As [`recv_within`](Self::recv_within).
            pub fn recv_batch_within(&self, batch: &mut Batch, timeout: Duration) -> io::Result<usize> {
                self.socket.recv_batch(batch, Wait::For(timeout))
            }
        }

        impl Connected for $type {
            type Addr = $addr;
            #[inline]
            fn send(&self, data: &[u8]) -> Result<(), SendError> {
                <$type>::send(self, data)
            }
            #[inline]
            fn try_send(&self, data: &[u8]) -> Result<(), SendError> {
                <$type>::try_send(self, data)
            }
            fn send_within(&self, data: &[u8], timeout: Duration) -> Result<(), SendError> {
                <$type>::send_within(self, data, timeout)
            }
            #[inline]
            fn recv(&self, buffer: &mut [u8]) -> io::Result<Received> {
                <$type>::recv(self, buffer)
            }
            #[inline]
            fn try_recv(&self, buffer: &mut [u8]) -> io::Result<Received> {
                <$type>::try_recv(self, buffer)
            }
            fn recv_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<Received> {
                <$type>::recv_within(self, buffer, timeout)
            }
            fn send_batch(&self, batch: &mut Batch) -> Result<usize, SendError> {
                <$type>::send_batch(self, batch)
            }
            fn recv_batch(&self, batch: &mut Batch) -> io::Result<usize> {
                <$type>::recv_batch(self, batch)
            }
            fn local_addr(&self) -> io::Result<$addr> {
                <$type>::local_addr(self)
            }
            fn remote_addr(&self) -> io::Result<$addr> {
                <$type>::remote_addr(self)
            }
        }
    };
}

pub(crate) use {connected_transfers, unconnected_receives, unconnected_sends};
