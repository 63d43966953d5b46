module slipway.build/images/pause

go 1.26.0
