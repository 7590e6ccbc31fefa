-- This server's clock. KEYS: any key of the fleet, so that a Cluster asks the node that dates everything else.
return now_at()
