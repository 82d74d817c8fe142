//! Tables in memory that give handles out in the order in which a volume does: the same rule, written down the plain way.

use flashlore_flash::{Chunks, Flash, FreeRows, Links, Lpn, QueueAt, Row, TableName, Tables};
use flashlore_volume::Identity;
use flashlore_volume::format::Table;

/// Tables of a device that stands for a volume.
#[derive(Debug, Clone, Copy)]
pub struct VolumeOrder {
    objects: usize,
    per_page: usize,
}

impl VolumeOrder {
    fn of(id: &Identity) -> Self {
        VolumeOrder {
            objects: Table::Objects.rows(id) as usize,
            per_page: Table::Objects.shape(id).rows_per_page() as usize,
        }
    }
}

impl Tables for VolumeOrder {
    type Of<R: Row> = Vec<R>;
    type Queue<R: Row> = Chunks<R>;
    type Note = ();
    type Free = PageLists;

    fn empty<R: Row>(&self, _name: TableName, _most: usize) -> Vec<R> {
        vec![R::of_byte(0); self.objects]
    }

    fn filled<R: Row>(&self, _name: TableName, row: R, rows: usize) -> Vec<R> {
        vec![row; rows]
    }

    fn queue<R: Row>(&self, _name: TableName, at: QueueAt) -> Chunks<R> {
        Chunks::starting_at(at.first)
    }

    fn free_handles(&self, exported: u32) -> PageLists {
        // The last row is nobody's.
        let rows: Vec<usize> = (0..self.objects.saturating_sub(1)).collect();
        let pages = rows.chunks(self.per_page.max(1));
        PageLists {
            free: pages
                .map(|rows| rows.iter().rev().copied().collect())
                .collect(),
            per_page: self.per_page,
            own: (exported as usize).div_ceil(self.per_page),
            used: 0,
            cursor: 0,
        }
    }
}

/// Free rows by page, the next one last.
#[derive(Debug)]
pub struct PageLists {
    free: Vec<Vec<usize>>,
    per_page: usize,
    /// Pages for the objects of addresses, and of those behind them as many as were used.
    own: usize,
    used: usize,
    cursor: usize,
}

impl FreeRows for PageLists {
    fn take(&mut self, near: Lpn, _link: impl Fn(usize) -> u32) -> Option<usize> {
        let own = self.own.min(self.free.len());
        let page_of_its_own = near.index() / self.per_page;
        if page_of_its_own < own
            && let Some(row) = self.free[page_of_its_own].pop()
        {
            return Some(row);
        }
        // Around those that were used, then a sixteenth more of them, then wherever there is one.
        let behind = self.free.len() - own;
        let around = (self.cursor..self.used).chain(0..self.cursor);
        let more = (self.used / 16 + 1).min(behind - self.used);
        let behind: Vec<usize> = around.chain(self.used..self.used + more).collect();
        for page in behind {
            if let Some(row) = self.free[own + page].pop() {
                self.cursor = page;
                if page >= self.used {
                    self.used += more;
                }
                return Some(row);
            }
        }
        self.free[..own].iter_mut().find_map(Vec::pop)
    }

    fn give_back(&mut self, row: usize) -> u32 {
        self.free[row / self.per_page].push(row);
        0
    }

    fn all(&self, rows: usize, _link: impl Fn(usize) -> u32) -> Result<Vec<usize>, String> {
        Ok((0..rows)
            .filter(|row| *row + 1 == rows || self.free[row / self.per_page].contains(row))
            .collect())
    }

    fn claim(&mut self, _rows: &[usize], _links: &mut impl Links) {
        unreachable!("a simulated device begins empty")
    }

    fn restore(&mut self, _free: &[usize], _rows: usize, _links: &mut impl Links) {
        unreachable!("a simulated device begins empty")
    }
}

/// A device whose tables are those.
pub struct WithTables<F> {
    device: F,
    tables: VolumeOrder,
}

impl<F> WithTables<F> {
    pub fn new(device: F, id: &Identity) -> Self {
        let tables = VolumeOrder::of(id);
        WithTables { device, tables }
    }
}

impl<F: Flash> Flash for WithTables<F> {
    type Page = F::Page;
    type Error = F::Error;
    type Tables = VolumeOrder;
    const PROVES: bool = F::PROVES;

    fn is_loss(error: &F::Error) -> bool {
        F::is_loss(error)
    }

    fn tables(&self) -> VolumeOrder {
        self.tables
    }

    flashlore_flash::pass_on!(device: geometry, read, program, erase, content, prove, prove_copy, barrier,
        window_begins, validity_changed, advance, idle_since, next_event);
}
