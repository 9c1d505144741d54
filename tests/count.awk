# Counts single tests in ctest's LastTest.log: those that GoogleTest and Python's unittest
# report for each program, and the program itself where it reports none or breaks off.
# Prints "PASSED FAILED".

function close_program() {
  if (!open) return
  if (ok) {
    passed += good ? good : 1
  } else {
    passed += good
    failed += bad ? bad : 1
  }
}

/^[0-9]+\/[0-9]+ Testing: / { close_program(); open = 1; ok = good = bad = 0 }
/^\[  PASSED  \] [0-9]+ test/ { good += $4 }
/^\[  FAILED  \] [0-9]+ test/ { bad += $4 }
/^Ran [0-9]+ tests? in / { good += $2 }
/^FAILED \(/ {
  n = split($0, parts, /[^0-9]+/)
  for (i = 1; i <= n; ++i) { bad += parts[i]; good -= parts[i] }
}
/^Test Passed\.$/ { ok = 1 }
END { close_program(); print passed + 0, failed + 0 }
