package scrape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// GoogleToken is the access token of the account that this machine runs as in Google's cloud, as its metadata service gives it. The
// value is one looker's: it is not safe for use by several goroutines.
type GoogleToken struct {
	Host string // HOST or HOST:PORT of the service

	client *http.Client // nil for one of its own
	value  string
	until  time.Time // when value is to be asked for anew
}

// spare is how long before its end a token is renewed. The service gives a new one only in the last minutes of the old.
const spare = time.Minute

// header is the line that shows the token, which is asked for when there is none or when it is about to end.
func (g *GoogleToken) header(ctx context.Context) (string, error) {
	if !time.Now().Before(g.until) {
		if err := g.renew(ctx); err != nil {
			return "", fmt.Errorf("access token from the metadata service: %w", err)
		}
	}
	return "Authorization: Bearer " + g.value, nil
}

// renew asks as https://cloud.google.com/compute/docs/access/authenticate-workloads says.
func (g *GoogleToken) renew(ctx context.Context) error {
	if g.client == nil {
		g.client = newClient(nil, nil)
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.Host+"/computeMetadata/v1/instance/service-accounts/default/token", nil)
	if err != nil {
		return err
	}
	ask.Header.Set("Metadata-Flavor", "Google")
	asked := time.Now()
	got, err := g.client.Do(ask)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	var told struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"` // seconds
	}
	switch err := json.NewDecoder(io.LimitReader(got.Body, 1<<16)).Decode(&told); {
	case got.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d", got.StatusCode)
	case err != nil || told.AccessToken == "" || strings.ContainsAny(told.AccessToken, "\r\n"):
		return errors.New("no token in its answer")
	}
	g.value, g.until = told.AccessToken, asked.Add(time.Duration(told.ExpiresIn)*time.Second-spare)
	return nil
}
