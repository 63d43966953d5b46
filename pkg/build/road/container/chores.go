package container

import (
	"errors"
	"sync"
)

// Chores are what can be done beside the work proper: containers are removed while the next one starts.
type chores struct {
	doing sync.WaitGroup
	mu    sync.Mutex
	errs  []error
}

func (c *chores) do(chore func() error) {
	c.doing.Go(func() {
		if err := chore(); err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.errs = append(c.errs, err)
		}
	})
}

// wait waits until all are done.
func (c *chores) wait() error {
	c.doing.Wait()
	return errors.Join(c.errs...)
}
