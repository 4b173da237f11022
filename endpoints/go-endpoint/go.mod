module weighbridge.local/endpoint

go 1.24
