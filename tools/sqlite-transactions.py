#!/usr/bin/env python3
"""Transactions like TPC-B on a new SQLite database, for so many seconds: sqlite-transactions.py FILE SECONDS

Rollback journal, every transaction synchronous; the filler is random from a fixed seed. docs/volume.md records it.
"""

import random
import sqlite3
import sys
import time

path, seconds = sys.argv[1], float(sys.argv[2])
db = sqlite3.connect(path, isolation_level=None)
db.execute("pragma journal_mode=delete")
db.execute("pragma synchronous=full")
db.execute("create table accounts(id integer primary key, balance integer, filler text)")
db.execute("create table history(account integer, delta integer, at real, filler text)")
db.execute("begin")
rng = random.Random(1)
for i in range(20000):
    db.execute("insert into accounts values(?,0,?)", (i, rng.randbytes(40).hex()))
db.execute("commit")
end, n = time.time() + seconds, 0
while time.time() < end:
    account, delta = rng.randrange(20000), rng.randrange(-999, 999)
    db.execute("begin immediate")
    db.execute("update accounts set balance=balance+? where id=?", (delta, account))
    db.execute("insert into history values(?,?,?,?)", (account, delta, time.time(), rng.randbytes(20).hex()))
    db.execute("commit")
    n += 1
print(n, "transactions")
