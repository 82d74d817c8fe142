//! What a wrapper of a device leaves to the device.

/// Methods of a [`Flash`](crate::Flash) that wraps another, in the field of this name: they do what those of the device
/// do.
#[macro_export]
macro_rules! pass_on {
    ($device:ident: $($method:ident),+) => {
        $($crate::pass_on!(@$method $device);)+
    };
    (@geometry $device:ident) => {
        fn geometry(&self) -> &$crate::Geometry {
            self.$device.geometry()
        }
    };
    (@tables $device:ident) => {
        fn tables(&self) -> Self::Tables {
            self.$device.tables()
        }
    };
    (@read $device:ident) => {
        fn read(
            &mut self,
            ready: $crate::Ready,
            ppn: $crate::Ppn,
            units: u32,
            cause: $crate::Cause,
            route: $crate::Route,
            tag: $crate::Tag,
        ) -> Result<$crate::Completion, Self::Error> {
            let done = self.$device.read(ready, ppn, units, cause, route, tag);
            done.map_err(Into::into)
        }
    };
    (@program $device:ident) => {
        fn program(
            &mut self,
            ready: $crate::Ready,
            page: $crate::PageId,
            units: &[$crate::Unit<Self::Page>],
            stream: $crate::Stream,
            route: $crate::Route,
            tags: &[$crate::Tag],
        ) -> Result<$crate::Completion, Self::Error> {
            let done = self.$device.program(ready, page, units, stream, route, tags);
            done.map_err(Into::into)
        }
    };
    (@erase $device:ident) => {
        fn erase(
            &mut self,
            at: $crate::Time,
            block: $crate::BlockId,
            background: bool,
            tag: $crate::Tag,
        ) -> Result<$crate::Completion, Self::Error> {
            let done = self.$device.erase(at, block, background, tag);
            done.map_err(Into::into)
        }
    };
    (@content $device:ident) => {
        fn content(&mut self, ppn: $crate::Ppn) -> Result<Self::Page, Self::Error> {
            self.$device.content(ppn).map_err(Into::into)
        }
    };
    (@prove $device:ident) => {
        fn prove(&self, ppn: $crate::Ppn, owner: $crate::Owner, page: &Self::Page) -> Result<(), Self::Error> {
            self.$device.prove(ppn, owner, page).map_err(Into::into)
        }
    };
    (@prove_copy $device:ident) => {
        fn prove_copy(&mut self, from: $crate::Ppn, owner: $crate::Owner) -> Result<(), Self::Error> {
            self.$device.prove_copy(from, owner).map_err(Into::into)
        }
    };
    (@barrier $device:ident) => {
        fn barrier(&mut self) -> Result<(), Self::Error> {
            self.$device.barrier().map_err(Into::into)
        }
    };
    (@window_begins $device:ident) => {
        fn window_begins(&mut self, instant: u64) {
            self.$device.window_begins(instant);
        }
    };
    (@validity_changed $device:ident) => {
        fn validity_changed(&mut self, ppn: $crate::Ppn) {
            self.$device.validity_changed(ppn);
        }
    };
    (@advance $device:ident) => {
        fn advance(&mut self, until: $crate::Time, done: &mut Vec<$crate::Finished>) {
            self.$device.advance(until, done);
        }
    };
    (@idle_since $device:ident) => {
        fn idle_since(&self, plane: $crate::PlaneId) -> Option<$crate::Time> {
            self.$device.idle_since(plane)
        }
    };
    (@next_event $device:ident) => {
        fn next_event(&self) -> Option<$crate::Time> {
            self.$device.next_event()
        }
    };
}
