module tare

go 1.26
