// Sub-graphs: branches and loops; see control.cpp.
PREPARE(If, any, if_prepare)
PREPARE(While, any, while_prepare)
PREPARE(Scan, any, scan_prepare)

KERNEL(If, any, generic, dense, whole, if_branch)
KERNEL(While, any, generic, dense, whole, while_loop)
KERNEL(Scan, any, generic, dense, whole, scan_loop)
