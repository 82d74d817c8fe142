# Names of the property tests in sources of Rust: functions in blocks of proptest!, up to the brace that closes one.
/^ *proptest! \{/ {
    match($0, /^ */)
    indent = RLENGTH
    inside = 1
    next
}
inside && match($0, /^ *\}/) && RLENGTH == indent + 1 { inside = 0 }
inside && /^ *fn [a-z0-9_]+\(/ {
    match($0, /^ */)
    if (RLENGTH == indent + 4) {
        sub(/^ *fn /, "")
        sub(/\(.*/, "")
        print
    }
}
