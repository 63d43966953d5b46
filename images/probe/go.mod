module slipway.build/images/probe

go 1.26.0
